//! Take a snapshot of etcd.

use std::{sync::Arc, time::Duration};

use kk_config::Host;
use kk_engine::{Failure, HostWork, OutputFn, Slots, Task, actions::Command};

use super::program;
use crate::{
    base::slots::{self, Taken},
    model::inputs::Inputs,
};

/// Takes the snapshot by the script that makes backups, as one of the backups. The current script is sent; the one on the host is
/// not used.
pub(super) fn task(inputs: &Inputs, host: &Host) -> Task {
    let take = Command::new("take a snapshot of etcd", "sh ./backup.sh\n")
        .file("backup.sh", program(inputs, host).into_bytes())
        .hint("No space left", "make room on this host, or set spec.etcd.backupDir to a larger disk")
        .output(into_slot(&inputs.spec.etcd.backup_dir, is_backup));
    Task::new("take_snapshot", "Take a snapshot of etcd")
        .timeout(Duration::from_mins(30))
        .on(&host.name, HostWork::new(vec![Box::new(take)]).provides(slots::snapshot_slot().key()))
}

/// Whether a backup has a name as the script on the hosts assigns it: `snapshot-20260801T020000Z.db`.
pub(super) fn is_backup(name: &str) -> bool {
    let time = name.strip_prefix("snapshot-").and_then(|rest| rest.strip_suffix("Z.db"));
    let Some((day, second)) = time.and_then(|time| time.split_once('T')) else { return false };
    let are_digits = |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    are_digits(day, 8) && are_digits(second, 6)
}

/// Reads the description of a snapshot that the scripts print. The snapshot must be in the backup directory and have such a name:
/// with another name, a compromised host could replace the snapshot of another host on the control machine.
pub(super) fn into_slot(
    directory: &str,
    is_wanted: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> OutputFn {
    let directory = format!("{}/", directory.trim_end_matches('/'));
    Arc::new(move |printed: &str, values: &Slots| {
        let named = |taken: &Taken| {
            let name = taken.path.strip_prefix(&directory).map(|name| name.trim_start_matches('/'));
            name.is_some_and(&is_wanted)
        };
        let taken = read(printed).filter(named).ok_or_else(|| {
            let said: String = printed.chars().take(300).collect();
            Failure::new(format!("no snapshot: {said}"))
        })?;
        values.output("etcd revision", taken.revision.to_string());
        values.fill(&slots::snapshot_slot(), taken);
        Ok(())
    })
}

fn read(printed: &str) -> Option<Taken> {
    let mut fields = printed.lines().last()?.split('\t').map(str::to_owned);
    let (path, sha256) = (fields.next()?, fields.next()?);
    Some(Taken { path, sha256, bytes: fields.next()?.parse().ok()?, revision: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, process::Command};

    use kk_engine::Slots;

    use super::{into_slot, is_backup};
    use crate::{base::slots, testing};

    /// Runs the script with these commands as `etcdctl` and `etcdutl`. Returns whether it succeeds, its output, and the existing
    /// backups.
    fn backup(directory: &Path, save: &str, status: &str) -> (bool, String, Vec<String>) {
        let here = directory.display().to_string();
        testing::program(directory, "etcdctl", save);
        testing::program(directory, "etcdutl", status);
        let text = crate::base::shell::script(
            &[
                ("directory", &format!("{here}/backups")),
                ("keep", "2"),
                ("endpoints", "e"),
                ("certificate", "c"),
            ],
            &crate::capabilities::etcd_backup::backup(),
        )
        .replace("export PATH=", &format!("export PATH={here}:"));
        let output = Command::new("sh").args(["-c", &text]).output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        let mut names: Vec<String> = fs::read_dir(directory.join("backups"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != ".lock")
            .collect();
        names.sort();
        (output.status.success(), said, names)
    }

    #[test]
    fn a_host_cannot_choose_the_name_of_its_snapshot() {
        for (path, is_taken) in [
            ("/var/backups/kube_etcd/snapshot-20260801T020000Z.db", true),
            ("/var/backups/kube_etcd//snapshot-20260801T020000Z.db", true),
            ("/var/backups/kube_etcd/b-snapshot-20260801T020000Z.db", false),
            ("/var/backups/kube_etcd/snapshot-20260801T020000Z.db.db", false),
            ("/var/backups/kube_etcd/snapshot-2026080\u{661}T020000Z.db", false),
            ("/var/backups/kube_etcd/snapshot-.db", false),
            ("/var/backups/kube_etcd/x/snapshot-20260801T020000Z.db", false),
            ("/etc/shadow", false),
        ] {
            let (output, values) = (into_slot("/var/backups/kube_etcd/", is_backup), Slots::default());
            assert_eq!(output(&format!("{path}\tsum\t544\t42\n"), &values).is_ok(), is_taken, "{path}");
            assert_eq!(values.get(&slots::snapshot_slot()).is_some(), is_taken, "{path}");
        }
        let Err(failure) = into_slot("/x", is_backup)(&"x".repeat(1 << 20), &Slots::default()) else {
            panic!("no failure")
        };
        assert!(failure.cause.len() < 400);
    }

    /// Writes 512 bytes and their checksum, as etcd does.
    const SAVES: &str = r#"for last; do :; done
        case "$*" in *kk-health*) exit ;; *'alarm list') echo 'memberID:7 alarm:NOSPACE '; exit ;; esac
        head -c 512 /dev/zero >"$last"
        /usr/bin/printf "$(sha256sum <"$last" | cut -d ' ' -f 1 | sed 's/../\\x&/g')" >>"$last""#;
    const WHOLE: &str = "echo '{\"hash\":1,\"revision\":42,\"totalKey\":3,\"totalSize\":9}'";

    #[test]
    fn a_backup_is_verified_and_the_oldest_go() {
        let directory = tempfile::tempdir().unwrap();
        let backups = directory.path().join("backups");
        fs::create_dir(&backups).unwrap();
        for name in
            ["snapshot-20250101T000000Z.db", "snapshot-20250102T000000Z.db", ".new.db.part", "mine.db"]
        {
            fs::write(backups.join(name), "old").unwrap();
        }
        let (ok, said, names) = backup(directory.path(), SAVES, WHOLE);
        assert!(ok, "{said}");
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names.contains(&"mine.db".into()) && names.contains(&"snapshot-20250102T000000Z.db".into()));
        let taken = super::read(&said).unwrap();
        assert_eq!((taken.bytes, taken.revision), (544, 42));
        assert_eq!(taken.sha256, kk_util::sha256(fs::read(taken.path).unwrap()));
    }

    #[test]
    fn a_backup_that_fails_leaves_the_others_and_nothing_half() {
        for (save, status) in [
            ("echo 'no space' >&2; exit 1", WHOLE),
            (SAVES, "echo 'sha256 of snapshot does not match' >&2; exit 1"),
            (SAVES, "echo '{}'"),
            (SAVES, "echo '{\"revision\":0}'"),
            ("for last; do :; done; case $last in /*) echo part >$last ;; esac", WHOLE),
            ("for last; do :; done; case $last in /*) head -c 544 /dev/zero >$last ;; esac", WHOLE),
            ("case \"$*\" in *kk-health*) echo 'no leader' >&2; exit 1 ;; esac; touch never", WHOLE),
            ("case \"$*\" in *'alarm list') echo 'memberID:7 alarm:CORRUPT ' ;; esac", WHOLE),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let backups = directory.path().join("backups");
            fs::create_dir(&backups).unwrap();
            let kept = [
                "snapshot-1.db",
                "snapshot-20250101T000000Z.db",
                "snapshot-20250102T000000Z.db",
                "snapshot-20250103T000000Z.db",
            ];
            for name in kept {
                fs::write(backups.join(name), "old").unwrap();
            }
            let (ok, said, names) = backup(directory.path(), save, status);
            assert!(!ok && super::read(&said).is_none(), "{said}");
            assert_eq!(names, kept);
        }
    }

    #[test]
    fn the_new_backup_stays_when_the_clock_was_set_back() {
        let directory = tempfile::tempdir().unwrap();
        let backups = directory.path().join("backups");
        fs::create_dir(&backups).unwrap();
        for name in
            ["snapshot-29990101T000000Z.db", "snapshot-29990102T000000Z.db", "snapshot-29990103T000000Z.db"]
        {
            fs::write(backups.join(name), "later").unwrap();
        }
        let (ok, said, names) = backup(directory.path(), SAVES, WHOLE);
        assert!(ok && names.len() == 2, "{said} {names:?}");
        assert!(fs::exists(super::read(&said).unwrap().path).unwrap());
    }

    /// Otherwise, backups from a clock that was ahead would displace all correct ones, and be restored as the newest.
    #[test]
    fn backups_of_a_time_that_has_not_come_go_first_and_are_not_the_newest() {
        let directory = tempfile::tempdir().unwrap();
        let backups = directory.path().join("backups");
        fs::create_dir(&backups).unwrap();
        let honest = "snapshot-20250101T000000Z.db";
        for name in [honest, "snapshot-29990101T000000Z.db", "snapshot-29990102T000000Z.db"] {
            fs::write(backups.join(name), "old").unwrap();
        }
        let newest = || {
            let variables = [("directory", &*backups.display().to_string())];
            let text = crate::base::shell::script(&variables, include_str!("newest_backup.sh"));
            let output = Command::new("sh").args(["-c", &text]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        assert_eq!(newest(), format!("{honest}\n"));
        let (ok, said, names) = backup(directory.path(), SAVES, WHOLE);
        assert!(ok && names.len() == 2 && names[0] == honest, "{said} {names:?}");
        assert!(names[1].as_str() < "snapshot-2999");
        assert_eq!(newest(), format!("{}\n", names[1]));
    }
}
