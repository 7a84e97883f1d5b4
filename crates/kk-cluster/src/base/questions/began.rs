//! Start time of the running kubelet.

use kk_engine::{Question, question};

/// In UTC by the host's clock, in the API's time format; the kubelet writes times by the same clock. Empty if no kubelet runs.
/// The value is 3 s early, because times are cut to seconds and a clock may be set shortly after boot.
pub(crate) const BEGAN: Question<String> = Question::new("kubelet_began", PRINT_BEGAN, question::text);

/// The script that prints it.
pub(crate) const PRINT_BEGAN: &str = include_str!("began.sh");

#[cfg(test)]
mod tests {
    use std::{fs, process::Command};

    use crate::testing;

    /// The output of the snippet if systemctl is this script.
    fn began(systemctl: &str) -> (bool, String) {
        let directory = tempfile::tempdir().unwrap();
        testing::program(directory.path(), "systemctl", systemctl);
        testing::program(
            directory.path(),
            "date",
            "if [ \"$1\" = +%s ]; then echo 1000000; else echo \"$3\"; fi",
        );
        let uptime = directory.path().join("uptime");
        fs::write(&uptime, "500.75 900.00\n").unwrap();
        let text = include_str!("began.sh").replace("/proc/uptime", uptime.to_str().unwrap());
        let path = format!("{}:/usr/bin:/bin", directory.path().display());
        let output = Command::new("sh").args(["-c", &text]).env("PATH", path).output().unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn the_time_is_that_of_the_process_in_whichever_order_systemd_says_it() {
        for state in [
            "ActiveState=active\\nExecMainStartTimestampMonotonic=200900000",
            "ExecMainStartTimestampMonotonic=200900000\\nActiveState=active",
        ] {
            assert_eq!(began(&format!("printf '{state}\\n'")), (true, "@999697\n".into()), "{state}");
        }
        let stopped = "printf 'ActiveState=activating\\nExecMainStartTimestampMonotonic=0\\n'";
        assert_eq!(began(stopped), (true, String::new()));
        assert_eq!(began("exit 1"), (false, String::new()), "no answer is not \"none runs\"");
    }
}
