//! Files, and blocks in files of somebody else.

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

#[test]
fn a_file_is_on_disk_before_it_has_its_name() {
    // Old programs write all to disk, and take no file.
    for (takes_files, wanted) in [
        (true, "owned absent\n.new.kk-new absent\n"),
        (false, "owned absent\n absent\n.new.kk-new absent\n absent\n"),
    ] {
        let host = Host::new();
        let sync = format!(
            "#!/bin/sh\nat=absent\n[ ! -e \"$KK_ROOT/etc/new\" ] || at=there\n\
             echo \"${{1##*/}} $at\" >>\"$KK_ROOT/../synced\"\n{takes_files} || [ $# -eq 0 ]\n"
        );
        let write = "printf %s \"$1\" >bin/sync && chmod 755 bin/sync";
        let mut writer = std::process::Command::new("sh");
        writer.args(["-c", write, "sh", &sync]).current_dir(host.directory.path());
        assert!(writer.status().unwrap().success());
        host.ok("echo text >s; kk_put s /etc/new 644 $ME");
        assert_eq!(host.read("etc/new"), "text\n");
        assert_eq!(fs::read_to_string(host.directory.path().join("synced")).unwrap(), wanted);
    }
}
