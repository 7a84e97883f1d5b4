//! The shell functions, run for real below a temporary root, with fakes in place of programs that change the machine.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// A host's root, and beside it a directory for scripts and one for fake programs.
struct Host {
    directory: tempfile::TempDir,
    shell: &'static [&'static str],
}

impl Host {
    fn new() -> Self {
        Self::with_shell(&["sh"])
    }

    fn with_shell(shell: &'static [&'static str]) -> Self {
        let host = Self { directory: tempfile::tempdir().unwrap(), shell };
        for name in ["root/etc", "root/proc/sys/net/ipv4", "root/usr", "work", "bin"] {
            fs::create_dir_all(host.directory.path().join(name)).unwrap();
        }
        // They say what they are asked on `calls`, and fail when a file says so.
        for name in ["systemctl", "journalctl", "modprobe", "useradd", "userdel", "swapoff", "swapon", "id"] {
            let text = format!(
                "#!/bin/sh\necho {name} \"$@\" >>{0}/calls\n[ ! -e {0}/said.{name}.$1 ] || cat {0}/said.{name}.$1\n[ ! -e {0}/fail.{name}.$1 ]\n",
                host.directory.path().display()
            );
            let path = host.directory.path().join("bin").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        host
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join("root").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Makes a fake program say something (`said`) or fail (`fail`) when it is asked for `verb`.
    fn fake(&self, what: &str, program: &str, verb: &str, text: &str) {
        let path = self.directory.path().join(format!("{what}.{program}.{verb}"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// What the fake programs were asked since the last time.
    fn calls(&self) -> Vec<String> {
        let path = self.directory.path().join("calls");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        text.lines().map(str::to_owned).collect()
    }

    fn run(&self, script: &str) -> Output {
        let lib = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.sh");
        let path =
            format!("{}:{}", self.directory.path().join("bin").display(), std::env::var("PATH").unwrap());
        let me = Command::new("id").args(["-un"]).output().unwrap();
        let group = Command::new("id").args(["-gn"]).output().unwrap();
        let word = |output: &Output| String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Command::new(self.shell[0])
            .args(&self.shell[1..])
            .args(["-e", "-c", &format!(". {lib}\n{script}")])
            .current_dir(self.directory.path().join("work"))
            .env("KK_ROOT", self.directory.path().join("root"))
            .env("ME", format!("{}:{}", word(&me), word(&group)))
            .env("PATH", path)
            .output()
            .unwrap()
    }

    fn ok(&self, script: &str) -> String {
        let output = self.run(script);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{script}: {errors}");
        errors
    }

    fn fails(&self, script: &str) -> String {
        let output = self.run(script);
        assert!(!output.status.success(), "{script} should have failed");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn owned(&self) -> Vec<String> {
        self.read("etc/kubekey/owned").lines().map(|line| line.replace('\t', " ")).collect()
    }

    fn mode(&self, name: &str) -> u32 {
        fs::symlink_metadata(self.path(name)).unwrap().permissions().mode() & 0o7777
    }

    /// Every path below the root with its kind, mode, time and content.
    fn picture(&self) -> BTreeMap<PathBuf, String> {
        let mut all = BTreeMap::new();
        let mut directories = vec![self.path("")];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                let data = fs::symlink_metadata(&path).unwrap();
                let content = if data.is_dir() {
                    directories.push(path.clone());
                    "directory".to_owned()
                } else if data.is_symlink() {
                    format!("to {}", fs::read_link(&path).unwrap().display())
                } else {
                    format!("{:?} {}", data.modified().unwrap(), fs::read_to_string(&path).unwrap())
                };
                all.insert(path, format!("{:o} {content}", data.permissions().mode()));
            }
        }
        all
    }
}

#[test]
fn everything_that_was_made_or_replaced_is_taken_back() {
    for shell in [&["sh"] as &[_], &["bash"], &["busybox", "sh"]] {
        if Command::new(shell[0]).arg("--help").output().is_err() {
            continue;
        }
        let host = Host::with_shell(shell);
        host.write("etc/hosts", "127.0.0.1 localhost\n# no newline at the end");
        host.write("etc/fstab", "/dev/sda1 / ext4\n/dev/null none swap sw 0 0\n");
        host.write("etc/containerd/config.toml", "of somebody else\n");
        fs::set_permissions(host.path("etc/containerd/config.toml"), fs::Permissions::from_mode(0o640))
            .unwrap();
        host.write("etc/cni/net.d/00-old.conf", "old");
        symlink("/run/resolv.conf", host.path("etc/resolv.conf")).unwrap();
        host.write("proc/sys/net/ipv4/ip_forward", "0\n");
        host.write("proc/swaps", "Filename Type Size Used Priority\n/dev/null partition 1 0 -2\n");
        fs::create_dir_all(host.path("opt/shared")).unwrap();
        fs::set_permissions(host.path("opt/shared"), fs::Permissions::from_mode(0o700)).unwrap();
        host.fake(
            "said",
            "systemctl",
            "show",
            "ActiveState=inactive\nUnitFileState=disabled\nNeedDaemonReload=no\n",
        );
        host.fake("fail", "id", "etcd", "");
        let before = host.picture();

        let change = "
            echo new >source
            kk_put source /etc/containerd/config.toml 600 $ME
            kk_put source /usr/local/lib/deep/file 644 $ME
            kk_put source /etc/resolv.conf 644 $ME
            kk_link /usr/local/lib/deep/file /usr/local/bin/link
            kk_dir /var/lib/etcd 700 $ME
            kk_dir /opt/shared 755 $ME
            printf '10.0.0.1 node1\\n' >block
            kk_block /etc/hosts '# BEGIN kk' '# END kk' block
            kk_block /etc/new/file '# BEGIN kk' '# END kk' block
            kk_sysctl net.ipv4.ip_forward 1
            kk_sysctl net.none 1
            kk_user etcd --system
            kk_unit etcd.service yes start
            kk_swap_off
        ";
        host.ok(change);
        assert_eq!(host.read("etc/containerd/config.toml"), "new\n");
        assert_eq!(
            (host.mode("etc/containerd/config.toml"), host.mode("usr/local/lib/deep/file")),
            (0o600, 0o644)
        );
        assert!(fs::symlink_metadata(host.path("etc/resolv.conf")).unwrap().is_file());
        assert_eq!(
            (host.mode("var/lib/etcd"), host.mode("opt/shared"), host.mode("usr/local")),
            (0o700, 0o755, 0o755)
        );
        let hosts = "127.0.0.1 localhost\n# no newline at the end\n# BEGIN kk\n10.0.0.1 node1\n# END kk\n";
        assert_eq!(host.read("etc/hosts"), hosts);
        assert_eq!(host.read("proc/sys/net/ipv4/ip_forward"), "1\n");
        assert_eq!(host.read("etc/fstab"), "/dev/sda1 / ext4\n#kubekey# /dev/null none swap sw 0 0\n");
        assert_eq!(
            (host.mode("etc/kubekey"), host.mode("etc/kubekey/owned"), host.mode("etc/kubekey/saved")),
            (0o700, 0o600, 0o700)
        );
        let calls = host.calls();
        for call in [
            "useradd --system etcd",
            "systemctl enable -q etcd.service",
            "systemctl start etcd.service",
            "swapoff /dev/null",
        ] {
            assert!(calls.contains(&call.to_owned()), "{call} is not in {calls:?}");
        }

        let owned = host.owned();
        host.ok(change);
        assert_eq!(host.owned(), owned, "a second time writes nothing down again");
        assert_eq!(host.read("etc/hosts"), hosts);

        let _ = fs::remove_file(host.directory.path().join("fail.id.etcd"));
        host.calls();
        // The fake of swapoff leaves the list as it is.
        let swaps = host.read("proc/swaps");
        host.write("proc/swaps", "");
        host.ok("kk_disown_all");
        host.write("proc/swaps", &swaps);
        let mut after = host.picture();
        // The block's file is written anew, so its time differs; and a setting's file is no file.
        for name in ["etc/hosts", "etc/fstab", "proc/swaps", "proc/sys/net/ipv4/ip_forward"] {
            let (was, is) = (&before[&host.path(name)], after.get_mut(&host.path(name)).unwrap());
            assert_eq!(was.split_once(" }").unwrap().1, is.split_once(" }").unwrap().1, "{name}");
            is.clone_from(was);
        }
        assert_eq!(after, before, "with {shell:?}");
        let calls = host.calls();
        assert!(
            calls.contains(&"swapon /dev/null".to_owned()) && calls.contains(&"userdel etcd".to_owned()),
            "{calls:?}"
        );
        assert!(calls.contains(&"systemctl disable -q --now etcd.service".to_owned()), "{calls:?}");
    }
}

#[test]
fn a_directory_with_something_in_it_and_unknown_lines_stay() {
    let host = Host::new();
    let note = host.ok(
        "kk_dir /var/data 755 $ME; echo mine >$KK_ROOT/var/data/mine; kk_record 'future	/x'; kk_disown_all",
    );
    assert_eq!(host.read("var/data/mine"), "mine\n");
    assert!(note.contains("note: /var/data is not empty, it stays"), "{note}");
    assert!(note.contains("note: unknown line, left alone: future /x"), "{note}");
    assert!(!host.path("etc/kubekey").exists());
}

#[test]
fn what_could_not_be_taken_back_is_kept_for_the_next_time() {
    let host = Host::new();
    host.write("etc/saved", "theirs");
    host.ok("echo new >s; kk_put s /etc/saved 644 $ME; kk_put s /etc/made 644 $ME");
    // A directory in the way of what is put back.
    fs::remove_file(host.path("etc/saved")).unwrap();
    fs::create_dir(host.path("etc/saved")).unwrap();
    let error = host.fails("kk_disown_all");
    assert!(error.contains("1 thing(s) could not be taken back"), "{error}");
    assert_eq!(host.owned(), ["saved /etc/saved"]);
    assert!(!host.path("etc/made").exists());
    fs::remove_dir(host.path("etc/saved")).unwrap();
    host.ok("kk_disown_all");
    assert_eq!(host.read("etc/saved"), "theirs");
    host.ok("kk_disown_all");
}

#[test]
fn a_host_belongs_to_one_cluster() {
    let host = Host::new();
    host.write("etc/machine-id", "77aa\n");
    host.ok("kk_belong prod ab12; kk_belong prod ab12; echo x >s; kk_put s /etc/made 644 $ME");
    assert_eq!(host.owned(), ["cluster prod ab12 77aa", "made /etc/made"]);
    for other in ["staging ab12", "prod ab13", "pro ab12", "prod 'ab12\t'"] {
        let error = host.fails(&format!("kk_belong {other}"));
        assert!(error.contains("this host belongs to the cluster prod (identity ab12"), "{error}");
    }
    assert_eq!(host.owned().len(), 2);
    host.ok("kk_disown_all");
    assert!(!host.path("etc/kubekey").exists());
    host.ok("kk_belong staging ab12");
}

#[test]
fn only_what_could_not_be_taken_back_leaves_a_host_in_its_cluster() {
    let host = Host::new();
    host.ok(
        "kk_belong prod-runtime ab12; echo x >s; kk_put s /etc/made 644 $ME; kk_put s /etc/runtime 644 $ME",
    );
    fs::remove_file(host.path("etc/made")).unwrap();
    fs::create_dir(host.path("etc/made")).unwrap();
    host.fails("kk_disown_all runtime");
    assert_eq!(host.owned(), ["cluster prod-runtime ab12 -", "made /etc/runtime", "made /etc/made"]);
    fs::remove_dir(host.path("etc/made")).unwrap();
    host.ok("kk_disown_all runtime");
    assert_eq!(host.owned(), ["made /etc/runtime"]);
}

#[test]
fn what_is_to_be_kept_stays_recorded() {
    let host = Host::new();
    host.ok("echo new >s; kk_put s /etc/mine 644 $ME; kk_put s /etc/runtime.toml 644 $ME");
    host.ok("kk_disown_all 'runtime|/ctr$'");
    assert!(!host.path("etc/mine").exists());
    assert_eq!(host.read("etc/runtime.toml"), "new\n");
    assert_eq!(host.owned(), ["made /etc/runtime.toml"]);
    host.ok("kk_disown_all");
    assert!(!host.path("etc/runtime.toml").exists() && !host.path("etc/kubekey").exists());
}

#[test]
fn what_is_to_be_kept_stays_with_its_lines() {
    let host = Host::new();
    host.write("etc/theirs", "theirs");
    host.ok("echo n >s; kk_put s /usr/bin/runtime 755 $ME; kk_put s /etc/theirs 644 $ME; kk_put s /etc/other 644 $ME");
    host.ok("kk_disown_all '/usr/bin|/etc/theirs'");
    assert_eq!(host.owned(), ["dir /usr/bin", "made /usr/bin/runtime", "saved /etc/theirs"]);
    assert!(host.path("usr/bin/runtime").exists() && !host.path("etc/other").exists());
    host.ok("kk_disown_all");
    assert!(!host.path("usr/bin").exists() && !host.path("etc/kubekey").exists());
    assert_eq!(host.read("etc/theirs"), "theirs");
}

#[test]
fn a_half_written_last_line_is_dropped() {
    let host = Host::new();
    host.ok("kk_record 'made	/a'");
    let path = host.path("etc/kubekey/owned");
    fs::write(&path, "made\t/a\nmade\t/etc/ho").unwrap();
    host.ok("kk_record 'made	/b'");
    assert_eq!(host.owned(), ["made /a", "made /b"]);
    assert_eq!(host.mode("etc/kubekey/owned"), 0o600);
}

#[test]
fn a_block_is_replaced_in_its_place_and_a_lone_begin_is_text() {
    for (before, after) in [
        ("a\n# B\nold\n# E\nz\n", "a\n# B\nnew\n# E\nz\n"),
        ("a\n", "a\n# B\nnew\n# E\n"),
        ("# B\na\n", "# B\na\n# B\nnew\n# E\n"),
        ("", "# B\nnew\n# E\n"),
        ("# B\n1\n# E\n# B\n2\n# E\n", "# B\nnew\n# E\n"),
        ("back\\slash & 'quote'\n", "back\\slash & 'quote'\n# B\nnew\n# E\n"),
    ] {
        let host = Host::new();
        host.write("etc/hosts", before);
        fs::set_permissions(host.path("etc/hosts"), fs::Permissions::from_mode(0o604)).unwrap();
        host.ok("echo new >b; kk_block /etc/hosts '# B' '# E' b");
        assert_eq!(host.read("etc/hosts"), after);
        assert_eq!(host.mode("etc/hosts"), 0o604);
        assert_eq!(names(&host.path("etc")), ["hosts", "kubekey"]);
    }
}

#[test]
fn a_block_in_a_linked_file_leaves_the_link() {
    let host = Host::new();
    host.write("run/hosts", "a\n");
    symlink("../run/hosts", host.path("etc/hosts")).unwrap();
    host.ok("echo new >b; kk_block /etc/hosts '# B' '# E' b");
    assert_eq!(host.read("run/hosts"), "a\n# B\nnew\n# E\n");
    assert!(host.path("etc/hosts").is_symlink());
    host.ok("kk_disown_all");
    assert_eq!(host.read("run/hosts"), "a\n");
    assert!(host.path("etc/hosts").is_symlink());
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_file_is_not_put_over_a_directory_and_leaves_nothing_half_done() {
    let host = Host::new();
    fs::create_dir(host.path("etc/dir")).unwrap();
    host.write("etc/dir/x", "x");
    assert!(host.fails("echo n >s; kk_put s /etc/dir 644 $ME").contains("/etc/dir is a directory"));
    assert_eq!(host.read("etc/dir/x"), "x");
    host.write("etc/kept", "kept");
    assert_eq!(names(&host.path("etc/kubekey")), ["owned"], "a directory is not copied aside");
    for script in
        ["kk_put no-such-source /etc/kept 644 $ME", "kk_put no-such-source /etc/kept 644 $ME || exit 3"]
    {
        host.fails(script);
        assert_eq!(host.read("etc/kept"), "kept");
        assert_eq!(names(&host.path("etc")), ["dir", "kept", "kubekey"]);
    }
}

#[test]
fn a_setting_that_is_read_only_or_right_already_is_left() {
    let host = Host::new();
    host.write("proc/sys/net/ipv4/range", "1024\t65535\n");
    host.ok("kk_sysctl net.ipv4.range '1024 65535'");
    assert!(!host.path("etc/kubekey").exists(), "nothing to write down");
    host.ok("kk_sysctl net.ipv4.range '1 2'; kk_sysctl net.ipv4.range '3 4'");
    assert_eq!(host.owned(), ["sysctl net.ipv4.range 1024 65535"]);
}

#[test]
fn a_unit_that_fails_shows_its_last_words() {
    let host = Host::new();
    host.fake(
        "said",
        "systemctl",
        "show",
        "ActiveState=inactive\nUnitFileState=enabled\nNeedDaemonReload=yes\n",
    );
    host.fake("fail", "systemctl", "restart", "");
    host.fake("said", "journalctl", "-u", "bind: address already in use\n");
    let error = host.fails("kk_unit etcd.service keep restart --no-block");
    assert!(error.ends_with("bind: address already in use\n"), "{error}");
    let verbs: Vec<String> =
        host.calls().iter().map(|call| call.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    let wanted = [
        "systemctl show",
        "systemctl daemon-reload",
        "systemctl restart",
        "systemctl reset-failed",
        "systemctl restart",
        "journalctl -u",
    ];
    assert_eq!(verbs, wanted);
}

#[test]
fn a_unit_that_was_turned_off_is_put_back() {
    let host = Host::new();
    host.fake(
        "said",
        "systemctl",
        "show",
        "ActiveState=active\nUnitFileState=enabled\nNeedDaemonReload=no\n",
    );
    host.ok("kk_unit firewalld.service no stop");
    assert_eq!(host.owned(), ["unit-off firewalld.service enabled active"]);
    host.calls();
    host.ok("kk_disown_all");
    assert_eq!(
        host.calls(),
        [
            "systemctl enable -q firewalld.service",
            "systemctl start firewalld.service",
            "systemctl daemon-reload"
        ]
    );
}

#[test]
fn waiting_ends_when_it_is_true_or_says_what_was_last_seen() {
    let host = Host::new();
    let condition = "echo 'echo x >>seen; echo not yet; [ $(wc -l <seen) -ge 3 ]' >condition";
    host.ok(&format!("{condition}; kk_wait 5 0.05 'waited until it is true'"));
    let error =
        host.fails("echo 'echo no leader; false' >condition; kk_wait 1 0.05 'waited until etcd is healthy'");
    assert_eq!(error, "no leader\nwaited until etcd is healthy for 1 s\n");
}

#[test]
fn waiting_is_not_cut_short_by_a_clock_that_is_corrected() {
    let host = Host::new();
    host.ok("date() { echo $(($(cat now 2>/dev/null || echo 0) + 9999)) | tee now; }; \
             echo '[ $(wc -l <looks) -ge 3 ]' >condition; sed -i '1i echo x >>looks' condition; \
             kk_wait 20 0.05 'waited'");
}

#[test]
fn swap_that_is_on_again_or_gone_for_good_does_not_keep_a_delete_from_its_end() {
    let host = Host::new();
    let swap = |name: &str| host.directory.path().join(name).display().to_string();
    let (on, off) = (swap("on"), swap("off"));
    fs::write(&off, "").unwrap();
    host.write("proc/swaps", &format!("Filename Type Size Used Priority\n{on} file 1 0 -2\n"));
    host.write("etc/kubekey/owned", &format!("swap\t{on}\nswap\t{off}\nswap\t/dev/gone\n"));
    let said = host.ok("kk_disown_all");
    assert_eq!(host.calls(), [format!("swapon {off}"), "systemctl daemon-reload".to_owned()]);
    assert!(said.contains("swap /dev/gone is gone already"), "{said}");
    assert!(!host.path("etc/kubekey").exists());

    host.write("etc/kubekey/owned", &format!("swap\t{off}\n"));
    host.fake("fail", "swapon", &off, "");
    host.fails("kk_disown_all");
    assert_eq!(host.owned(), [format!("swap {off}")]);
}

#[test]
fn what_a_power_cut_left_of_a_file_goes_with_it() {
    let host = Host::new();
    host.ok("kk_own /usr/it");
    for name in ["usr/.kk-0123456789abcdef-it", "usr/.it.kk-new", "usr/it.of-somebody"] {
        host.write(name, "");
    }
    host.ok("kk_disown_all");
    assert_eq!(names(&host.path("usr")), ["it.of-somebody"]);
}

#[test]
fn a_module_that_is_loaded_is_not_written_down() {
    let host = Host::new();
    host.write("proc/modules", "overlay 1 0 - Live 0x0\n");
    host.ok("kk_module overlay");
    assert!(host.calls().is_empty());
    host.ok("kk_module vxlan");
    assert_eq!(host.calls(), ["modprobe vxlan"]);
    host.fake("fail", "modprobe", "ip_vs", "");
    host.fails("kk_module ip_vs");
}
