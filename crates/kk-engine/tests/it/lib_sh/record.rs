//! The record of changes, and how they are reverted.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
};

use crate::lib_sh::host::{Host, names};

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
        // The fake of swapoff does not change the list.
        let swaps = host.read("proc/swaps");
        host.write("proc/swaps", "");
        host.ok("kk_disown_all");
        host.write("proc/swaps", &swaps);
        let mut after = host.picture();
        // The block's file is rewritten, so its time differs. The "file" of a kernel setting is not a regular file.
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
fn what_is_named_is_taken_back_and_the_rest_stays_with_its_cluster() {
    let host = Host::new();
    host.ok("kk_belong prod ab12; echo x >s; for f in /etc/one /etc/two; do kk_put s /opt$f 644 $ME; done; kk_dir /etc/one-more 755 $ME");
    host.ok("kk_disown_only '^[^\t]*\t/opt/etc/one(\t|$)|^[^\t]*\t/etc/one'");
    assert!(!host.path("opt/etc/one").exists() && !host.path("etc/one-more").exists());
    assert!(host.path("opt/etc/two").exists());
    let owned = host.owned();
    assert!(
        owned[0].starts_with("cluster prod") && owned.contains(&"made /opt/etc/two".to_owned()),
        "{owned:?}"
    );
    assert!(!owned.contains(&"made /opt/etc/one".to_owned()), "{owned:?}");
    host.ok("kk_disown_only 'etc|opt'; kk_disown_only 'nothing'");
    assert!(!host.path("opt/etc").exists());
    assert_eq!(host.owned().len(), 1, "the head line stays");
}

/// The state after a useradd that was killed.
#[test]
fn a_user_without_a_group_gets_one() {
    let host = Host::new();
    let id = "id() { case $1 in -gn) return 1 ;; -g) echo 998 ;; *) echo ok ;; esac; }; groupadd() { echo groupadd \"$@\" >&2; }";
    let note = host.ok(&format!("{id}; kk_user etcd --system"));
    assert!(note.contains("groupadd --system --gid 998 etcd"), "{note}");
    assert!(!host.calls().iter().any(|call| call.starts_with("useradd")), "the user is there");
}

#[test]
fn what_could_not_be_taken_back_is_kept_for_the_next_time() {
    let host = Host::new();
    host.write("etc/saved", "theirs");
    host.ok("echo new >s; kk_put s /etc/saved 644 $ME; kk_put s /etc/made 644 $ME");
    // A directory at the path that is restored.
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
fn a_cluster_whose_ca_was_replaced_is_named_anew_in_the_same_place() {
    let host = Host::new();
    host.ok("kk_belong prod ab12; echo x >s; kk_put s /etc/made 644 $ME");
    host.ok("kk_belong_anew prod cd34; kk_belong_anew prod cd34; kk_belong prod cd34");
    assert_eq!(host.owned(), ["cluster prod cd34 -", "made /etc/made"]);
    assert!(host.fails("kk_belong_anew staging cd34").contains("prod"));
}
