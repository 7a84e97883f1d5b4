//! Removes what kube-proxy creates in mode `ipvs` in addition to its rules. This is a separate capability, because only the
//! binary of kube-proxy can remove it on every host. This must happen before the runtime removes the pods, and the rules are
//! removed after that.

mod remove_virtual_servers;

use kk_engine::Task;

use crate::model::{
    capability::{Capability, Stage},
    inputs::Inputs,
};

/// The virtual servers of IPVS.
pub(crate) struct Ipvs;

impl Capability for Ipvs {
    fn name(&self) -> &'static str {
        "ipvs"
    }

    fn stage(&self) -> Stage {
        Stage::Hosts
    }

    fn remove(&self, inputs: &Inputs) -> Vec<Task> {
        vec![remove_virtual_servers::task(inputs)]
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        iter::repeat_with,
        os::unix::process::{CommandExt as _, ExitStatusExt as _},
        path::PathBuf,
        process::{Child, Command},
        thread,
        time::Duration,
    };

    use tempfile::TempDir;

    use crate::testing;

    const HEAD: &str = "IP Virtual Server version 1.2.1 (size=4096)\nProt LocalAddress:Port Scheduler Flags\n  -> RemoteAddress:Port Forward Weight ActiveConn InActConn\n";
    const OWN: &str = "TCP  0A60000A:0035 rr \n  -> 0AE90002:0035      Masq    1      0          0\n";

    /// A host with virtual servers and a kube-proxy.
    struct Host {
        directory: TempDir,
        proxy: Child,
    }

    impl Host {
        /// `link` and `cleanup` are shell code: the command `ip`, and what the binary of kube-proxy does with the file `ip_vs`.
        fn new(servers: &str, link: &str, cleanup: &str) -> Self {
            let directory = tempfile::tempdir().unwrap();
            let proxy = Command::new("sleep").arg("600").spawn().unwrap();
            let pid = proxy.id();
            testing::program(directory.path(), "ip", link);
            // Records the state of kube-proxy during the call: T is stopped.
            let exec = format!("sed 's/.*) //; s/ .*//' /proc/{pid}/stat >state; {cleanup}");
            let crictl = format!("case $1 in ps) echo c1 ;; inspect) echo {pid} ;; exec) {exec} ;; esac");
            testing::program(directory.path(), "crictl", &crictl);
            fs::write(directory.path().join("ip_vs"), format!("{HEAD}{servers}")).unwrap();
            let addresses = "fd000000000000000000000000000010 05 80 00 82 kube-ipvs0\n";
            fs::write(directory.path().join("if_inet6"), addresses).unwrap();
            Self { directory, proxy }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.directory.path().join(name)
        }

        fn script(&self) -> String {
            let text = include_str!("remove_virtual_servers.sh")
                .replace("/proc/net/ip_vs", self.path("ip_vs").to_str().unwrap())
                .replace("/proc/net/if_inet6", self.path("if_inet6").to_str().unwrap());
            format!("kk_note() {{ echo \"$1\" >note; }}\n{text}\necho went on")
        }

        /// Runs the script. Returns whether the binary of kube-proxy was run, and the notes.
        fn run(&mut self) -> (bool, String) {
            let output = testing::run_script(self.directory.path(), &self.script());
            assert!(String::from_utf8_lossy(&output.stdout).ends_with("went on\n"), "{output:?}");
            let state = fs::read_to_string(self.path("state")).ok();
            assert!(state.as_deref().is_none_or(|state| state == "T\n"), "beside a kube-proxy that works");
            assert_eq!(self.proxy_is_killed(state.is_some()), state.is_some());
            (state.is_some(), fs::read_to_string(self.path("note")).unwrap_or_default())
        }

        /// A killed process may need a moment to end.
        fn proxy_is_killed(&mut self, wanted: bool) -> bool {
            let looks = if wanted { 200 } else { 1 };
            let status = repeat_with(|| {
                thread::sleep(Duration::from_millis(50));
                self.proxy.try_wait().unwrap()
            });
            status.take(looks).flatten().next().is_some_and(|status| status.signal() == Some(9))
        }
    }

    impl Drop for Host {
        fn drop(&mut self) {
            // The process may have ended already.
            let _ = self.proxy.kill();
            let _ = self.proxy.wait();
        }
    }

    const LINK: &str =
        "echo '5: kube-ipvs0    inet 10.96.0.10/32 scope global kube-ipvs0\\ valid_lft forever'";
    const EMPTIES: &str = "head -n 3 ip_vs >ip_vs.new; mv ip_vs.new ip_vs";

    #[test]
    fn only_where_all_are_of_kube_proxy_its_program_removes_them() {
        let of_nodes = "TCP  AC1E000B:7530 rr \nTCP  AC1E000B:7FFF rr \n";
        let six = "UDP  [fd00:0000:0000:0000:0000:0000:0000:0010]:0035 rr \n";
        for (servers, link, runs) in [
            (String::new(), LINK, false),
            (OWN.to_owned(), LINK, true),
            (format!("{OWN}{of_nodes}{six}"), LINK, true),
            (format!("{OWN}TCP  AC1E000B:01BB rr \n"), LINK, false),
            (format!("{OWN}TCP  AC1E000B:8000 rr \n"), LINK, false),
            (format!("{OWN}UDP  [fd00:0000:0000:0000:0000:0000:0000:0011]:0035 rr \n"), LINK, false),
            (format!("FWM  75300001 rr \n{OWN}"), LINK, false),
            (of_nodes.to_owned(), "exit 1", false),
        ] {
            assert_eq!(Host::new(&servers, link, EMPTIES).run(), (runs, String::new()), "{servers}");
        }
    }

    #[test]
    fn where_nobody_can_tell_whose_they_are_they_stay() {
        let mut host = Host::new(OWN, LINK, EMPTIES);
        let awk = "case $* in *FILENAME*) exit 2 ;; esac; exec /usr/bin/awk \"$@\"";
        testing::program(host.directory.path(), "awk", awk);
        assert_eq!(host.run(), (false, String::new()));
    }

    #[test]
    fn what_its_program_did_not_remove_is_said() {
        let (ran, note) = Host::new(OWN, LINK, "echo no link").run();
        assert!(ran);
        assert_eq!(note, "kube-proxy did not remove its virtual servers of IPVS: no link\n");
    }

    #[test]
    fn a_delete_that_is_interrupted_leaves_no_stopped_kube_proxy() {
        let mut host = Host::new(OWN, LINK, ": >began; exec sleep 600");
        let path = format!("{}:/usr/bin:/bin", host.directory.path().display());
        let mut script = Command::new("sh");
        script.args(["-euc", &host.script()]).current_dir(&host.directory).env("PATH", path).process_group(0);
        let mut script = script.spawn().unwrap();
        while !host.path("began").exists() {
            assert!(script.try_wait().unwrap().is_none(), "it ended without kube-proxy's program");
            thread::sleep(Duration::from_millis(20));
        }
        let group = format!("-{}", script.id());
        assert!(Command::new("kill").args(["-TERM", "--", &group]).status().unwrap().success());
        assert!(host.proxy_is_killed(true));
        script.wait().unwrap();
    }
}
