//! Files in directories of other users: root writes none of them itself. These tests need two users, so they run as root only.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, chown, symlink},
    process::{Child, Command},
};

use super::host::{Host, names};

/// The id of the user nobody, which each system has.
const USER: u32 = 65534;

/// A host on which the user nobody has a home. `None`: the tests do not run as root.
fn host() -> Option<Host> {
    if !Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n") {
        return None;
    }
    let host = Host::new();
    fs::remove_file(host.directory.path().join("bin/id")).unwrap();
    for (path, mode) in
        [(host.directory.path().to_owned(), 0o755), (host.directory.path().join("work"), 0o700)]
    {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir_all(host.path("home/nobody")).unwrap();
    own(&host, "home/nobody");
    host.write("etc/kubernetes/admin.conf", "admin\n");
    Some(host)
}

fn own(host: &Host, name: &str) {
    std::os::unix::fs::lchown(host.path(name), Some(USER), Some(USER)).unwrap();
}

const PUT: &str = "kk_put_as nobody $KK_ROOT/etc/kubernetes/admin.conf /home/nobody/.kube/config\n";
const FILE: &str = "home/nobody/.kube/config";

#[test]
fn a_file_of_a_user_is_the_users_and_goes_with_its_directory() {
    let Some(host) = host() else { return };
    let before = host.picture();
    for _ in 0..2 {
        host.ok(PUT);
        assert_eq!((host.read(FILE), host.mode(FILE), host.owner(FILE)), ("admin\n".into(), 0o600, USER));
        assert_eq!((host.mode("home/nobody/.kube"), host.owner("home/nobody/.kube")), (0o700, USER));
        assert_eq!(names(&host.path("home/nobody/.kube")), ["config"]);
        assert_eq!(host.owned(), ["dir /home/nobody/.kube nobody", "made /home/nobody/.kube/config nobody"]);
    }
    assert_eq!(fs::read_dir(host.directory.path().join("work")).unwrap().count(), 1, "no copy is left");
    host.write("home/nobody/.kube/.config.kk-new", "left by a power cut");
    own(&host, "home/nobody/.kube/.config.kk-new");
    host.ok("kk_disown_all");
    assert_eq!(host.picture(), before);
}

#[test]
fn what_a_user_had_is_put_back_as_it_was() {
    for is_link in [false, true] {
        let Some(host) = host() else { return };
        host.write("home/nobody/.kube/mine", "of another cluster");
        if is_link {
            symlink("mine", host.path(FILE)).unwrap();
        } else {
            host.write(FILE, "of the user");
            fs::set_permissions(host.path(FILE), fs::Permissions::from_mode(0o640)).unwrap();
        }
        for name in ["home/nobody/.kube", "home/nobody/.kube/mine", FILE] {
            own(&host, name);
        }
        host.ok(PUT);
        assert_eq!((host.read(FILE), host.mode(FILE)), ("admin\n".into(), 0o600));
        assert_eq!(host.read("home/nobody/.kube/mine"), "of another cluster");
        host.ok("kk_disown_all");
        assert_eq!(host.owner(FILE), USER);
        assert_eq!(names(&host.path("home/nobody/.kube")), ["config", "mine"]);
        if is_link {
            assert_eq!(fs::read_link(host.path(FILE)).unwrap().to_str(), Some("mine"));
        } else {
            assert_eq!((host.read(FILE), host.mode(FILE)), ("of the user".into(), 0o640));
        }
        assert!(!host.path("etc/kubekey").exists());
    }
}

#[test]
fn nothing_is_written_or_removed_through_a_link_of_the_user() {
    let Some(host) = host() else { return };
    host.write("etc/apt/apt.conf.d/config", "root's");
    host.write("etc/shadow", "root's");
    symlink(host.path("etc/apt/apt.conf.d"), host.path("home/nobody/.kube")).unwrap();
    own(&host, "home/nobody/.kube");
    let error = host.fails(PUT);
    assert!(error.contains("/home/nobody/.kube/config as the user nobody"), "{error}");
    assert!(error.contains("ermission denied"), "{error}");
    // The lines that a run recorded before the link existed.
    host.write(
        "etc/kubekey/owned",
        "dir\t/home/nobody/.kube\tnobody\nmade\t/home/nobody/.kube/config\tnobody\n",
    );
    host.fails("kk_disown_all");
    // The file itself is a link: the link is replaced, and its target stays unchanged.
    fs::remove_file(host.path("home/nobody/.kube")).unwrap();
    fs::create_dir(host.path("home/nobody/.kube")).unwrap();
    symlink(host.path("etc/shadow"), host.path(FILE)).unwrap();
    for name in ["home/nobody/.kube", FILE] {
        own(&host, name);
    }
    host.ok(PUT);
    assert_eq!((host.read(FILE), host.mode(FILE)), ("admin\n".into(), 0o600));
    host.ok("kk_disown_all");
    assert_eq!(names(&host.path("etc/apt/apt.conf.d")), ["config"]);
    for name in ["etc/apt/apt.conf.d/config", "etc/shadow"] {
        assert_eq!((host.read(name), host.owner(name)), ("root's".into(), 0));
    }
}

/// Ends the disturbing process even if the test fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_user_who_changes_links_all_the_time_leads_root_nowhere() {
    let Some(host) = host() else { return };
    host.write("etc/apt/apt.conf.d/config", "root's");
    host.write("victim", "root's");
    // The temporary names that root once wrote to, and the directory itself.
    let text = "cd \"$1/home/nobody\" && while :; do
        mkdir .kube; ln -s \"$1/victim\" .kube/.config.kk-new; ln -s \"$1/victim\" .kube/config
        mv .kube .k; ln -s \"$1/etc/apt/apt.conf.d\" .kube; rm -rf .k; rm -f .kube; done 2>/dev/null";
    let mut attack = Command::new("setpriv");
    attack
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", text, "sh"])
        .arg(host.path(""));
    let Ok(child) = attack.spawn() else { return };
    let attack = Ended(child);
    for _ in 0..40 {
        host.ok(&format!("{} || :", PUT.trim_end()));
        host.ok("kk_disown_all || :");
        assert_eq!(
            (host.read("victim"), host.owner("victim"), host.mode("victim")),
            ("root's".into(), 0, 0o644)
        );
        assert_eq!(names(&host.path("etc/apt/apt.conf.d")), ["config"]);
        let name = "etc/apt/apt.conf.d/config";
        assert_eq!((host.read(name), host.owner(name), host.mode(name)), ("root's".into(), 0, 0o644));
        assert_eq!((host.owner("etc/apt/apt.conf.d"), host.mode("etc/apt/apt.conf.d")), (0, 0o755));
    }
    drop(attack);
}

#[test]
fn a_user_without_a_home_gets_no_file_and_one_that_is_gone_keeps_it() {
    let Some(host) = host() else { return };
    fs::remove_dir(host.path("home/nobody")).unwrap();
    let error = host.fails(PUT);
    assert!(error.contains("cannot write /home/nobody/.kube/config as the user nobody"), "{error}");
    assert!(!host.path("home/nobody").exists());
    host.ok("kk_disown_all");
    assert!(host.fails(&PUT.replace("kk_put_as nobody", "kk_put_as no-such-user")).contains("no-such-user"));

    host.write(FILE, "theirs");
    host.write(
        "etc/kubekey/owned",
        "dir\t/home/nobody/.kube\tno-such-user\nmade\t/home/nobody/.kube/config\tno-such-user\n",
    );
    let note = host.ok("kk_disown_all");
    assert!(note.contains("the user no-such-user is gone, /home/nobody/.kube/config stays"), "{note}");
    assert_eq!(host.read(FILE), "theirs");
}

#[test]
fn a_file_that_is_too_large_or_none_is_named_and_its_content_is_not() {
    let Some(host) = host() else { return };
    host.write(FILE, &"secret".repeat(200_000));
    own(&host, FILE);
    own(&host, "home/nobody/.kube");
    for script in [PUT, "kk_read_as nobody /home/nobody/.kube/config"] {
        let error = host.fails(script);
        assert!(error.contains("/home/nobody/.kube/config") && !error.contains("secret"), "{error}");
    }
    fs::remove_file(host.path(FILE)).unwrap();
    fs::create_dir(host.path(FILE)).unwrap();
    assert!(host.fails(PUT).contains("is neither a file nor a link"));
}

/// Shell text that prepares the directories below the root, and the expected error; empty if the directories are accepted.
const WAYS: [(&str, &str); 9] = [
    ("mkdir -p opt/a", ""),
    ("mkdir -p data opt; ln -s ../data opt/a", ""),
    ("mkdir -p data opt; ln -s \"$PWD/data\" opt/a", ""),
    ("mkdir -p opt/a; chown nobody opt/a", "the directory /opt/a belongs to the user nobody"),
    (
        "mkdir -p data opt; ln -s ../data opt/a; chown -h nobody opt/a",
        "the link /opt/a belongs to the user nobody",
    ),
    (
        "mkdir -p data opt; chown nobody data; ln -s ../data opt/a",
        "the directory /data belongs to the user nobody",
    ),
    ("mkdir -p opt/a; chmod 777 opt/a", "every user may write to /opt/a"),
    ("mkdir -p opt/a; chmod 1777 opt/a", ""),
    ("mkdir -p opt; ln -s a opt/a", "too many links"),
];

#[test]
fn root_touches_nothing_below_what_another_user_can_change() {
    for (way, trouble) in WAYS {
        for script in [
            "kk_put s /opt/a/file 644 root:root",
            "kk_put s /opt/a/b/file 644 root:root",
            "kk_dir /opt/a/file 755 root:root",
            "kk_link /etc /opt/a/file",
            "kk_own /opt/a/file",
        ] {
            let Some(host) = host() else { return };
            host.ok(&format!("(cd $KK_ROOT; {way})\necho new >s"));
            if trouble.is_empty() {
                host.ok(script);
                continue;
            }
            let error = host.fails(script);
            assert!(error.contains(trouble), "{way}, {script}: {error}");
            assert!(host.owned().is_empty(), "{way}, {script}");
        }
    }
}

#[test]
fn root_takes_back_nothing_below_what_another_user_can_change() {
    let Some(host) = host() else { return };
    host.ok("echo new >s; kk_put s /opt/a/file 644 root:root; kk_dir /opt/b/c 755 root:root");
    host.write("etc/victims/file", "root's");
    fs::create_dir(host.path("etc/victims/c")).unwrap();
    for name in ["a", "b"] {
        fs::rename(host.path(&format!("opt/{name}")), host.path(&format!("opt/.{name}"))).unwrap();
        symlink(host.path("etc/victims"), host.path(&format!("opt/{name}"))).unwrap();
        own(&host, &format!("opt/{name}"));
    }
    let error = host.fails("kk_disown_all");
    assert!(error.contains("the link /opt/a belongs to the user nobody"), "{error}");
    assert_eq!(names(&host.path("etc/victims")), ["c", "file"]);
}

#[test]
fn a_directory_of_a_service_and_its_attributes_are_set() {
    let Some(host) = host() else { return };
    fs::create_dir_all(host.path("data")).unwrap();
    fs::create_dir_all(host.path("var/lib")).unwrap();
    symlink("../../data", host.path("var/lib/etcd")).unwrap();
    for _ in 0..2 {
        host.ok(
            "kk_dir /var/lib/etcd 700 nobody:$(id -gn nobody); kk_dir /srv/etcd 700 nobody:$(id -gn nobody)",
        );
        assert_eq!((host.owner("data"), host.mode("data")), (USER, 0o700));
        assert_eq!((host.owner("srv/etcd"), host.mode("srv/etcd")), (USER, 0o700));
    }
    host.ok("kk_disown_all");
    assert_eq!((host.owner("data"), host.path("srv").exists()), (0, false));
    chown(host.path("data"), Some(0), Some(0)).unwrap();
}
