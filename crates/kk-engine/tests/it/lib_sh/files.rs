//! Files, and blocks in files that kk does not own.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
};

use crate::lib_sh::host::{Host, names};

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

/// Puts a fake `sync` with this text before the machine's own. Another process writes it, as in [`Host::new`].
fn sync(host: &Host, text: &str) {
    let mut writer = std::process::Command::new("sh");
    writer.args(["-ec", "printf '#!/bin/sh\\n%s' \"$1\" >bin/sync; chmod 755 bin/sync", "sh", text]);
    assert!(writer.current_dir(host.directory.path()).status().unwrap().success());
}

#[test]
fn a_file_is_on_disk_before_it_has_its_name() {
    // GNU coreutils before 8.24 report that they ignore the file, write everything to disk, and succeed.
    for warning in ["", "sync: ignoring all arguments"] {
        let host = Host::new();
        let text = "at=absent\n[ ! -e \"$KK_ROOT/etc/new\" ] || at=there\n\
             echo \"${1##*/} $at\" >>\"$KK_ROOT/../synced\"\n";
        sync(&host, &format!("{text}printf '{warning}' >&2\n"));
        assert_eq!(host.ok("echo text >s; kk_put s /etc/new 644 $ME"), "");
        assert_eq!(host.read("etc/new"), "text\n");
        let synced = fs::read_to_string(host.directory.path().join("synced")).unwrap();
        assert_eq!(synced, "owned absent\n.new.kk-new absent\n");
    }
}

#[test]
fn a_file_that_cannot_be_written_to_disk_replaces_nothing() {
    let failing = |name: &str| {
        format!("case ${{1-}} in */{name}) echo 'sync: Input/output error' >&2; exit 1 ;; esac\n")
    };
    let host = Host::new();
    host.write("etc/kept", "kept");
    sync(&host, &failing(".kept.kk-new"));
    for script in ["kk_put s /etc/kept 644 $ME", "kk_put s /etc/kept 644 $ME || exit 3"] {
        let reported = host.fails(&format!("echo new >s; {script}"));
        assert_eq!(reported, "cannot write /etc/.kept.kk-new to disk: sync: Input/output error\n");
        assert_eq!(host.read("etc/kept"), "kept");
        assert_eq!(names(&host.path("etc")), ["kept", "kubekey"]);
    }
    sync(&host, "");
    host.ok("echo new >s; kk_put s /etc/one 644 $ME; kk_put s /etc/two 644 $ME");
    let record = host.owned();
    sync(&host, &failing("owned.new"));
    host.fails("kk_disown_only '^made.*/one' || exit 3");
    assert_eq!(host.owned(), record);
    fs::write(host.path("etc/kubekey/owned"), "made\t/etc/one\nhalf a li").unwrap();
    host.fails("kk_state || exit 3");
    assert_eq!(host.owned(), ["made /etc/one", "half a li"]);
}

#[test]
fn a_host_without_sync_gets_files_by_a_rename() {
    let host = Host::new();
    host.write("etc/file", "old");
    fs::hard_link(host.path("etc/file"), host.path("etc/same")).unwrap();
    let tools = "mkdir tools; for tool in awk cat chmod chown cp grep mkdir mv readlink rm sed stat tail; do \
         ln -s \"$(command -v $tool)\" tools/$tool; done; PATH=$PWD/tools\n";
    host.ok(&format!("{tools}echo new >s; kk_put s /etc/file 644 $ME"));
    assert_eq!((host.read("etc/file").as_str(), host.read("etc/same").as_str()), ("new\n", "old"));
}

#[test]
fn a_link_is_restored_and_what_it_points_to_is_not_touched() {
    let host = Host::new();
    symlink("missing", host.path("etc/link")).unwrap();
    host.ok("echo new >s; kk_put s /etc/link 644 $ME");
    sync(&host, "echo \"${1##*/}\" >>\"$KK_ROOT/../synced\"\n[ $# -eq 0 ] || [ -e \"$1\" ]\n");
    host.ok("kk_disown_all");
    assert_eq!(fs::read_link(host.path("etc/link")).unwrap().to_str(), Some("missing"));
    let synced = fs::read_to_string(host.directory.path().join("synced")).unwrap_or_default();
    assert!(!synced.contains("link"), "{synced}");
}
