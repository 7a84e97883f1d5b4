//! Units, kernel settings and modules, and waits.

use std::fs;

use crate::lib_sh::host::Host;

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
fn a_package_goes_as_far_as_it_came_unless_others_need_it() {
    for (was, now, needed, expected, left) in [
        ("absent", "installed", false, &["--no-act --purge socat", "--purge socat"][..], ""),
        ("absent", "half-configured", false, &["--no-act --purge socat", "--purge socat"], ""),
        ("absent", "config-files", false, &["--no-act --purge socat", "--purge socat"], ""),
        ("config-files", "installed", false, &["--no-act --remove socat", "--remove socat"], ""),
        ("config-files", "config-files", false, &[], ""),
        ("absent", "not-installed", false, &[], ""),
        (
            "absent",
            "installed",
            true,
            &["--no-act --purge socat"],
            "note: package socat is needed by others, it stays\n",
        ),
    ] {
        let host = Host::new();
        host.write("etc/kubekey/owned", &format!("package\tsocat\t{was}\n"));
        host.fake("said", "dpkg-query", "-W", now);
        if needed {
            host.fake("fail", "dpkg", "--no-act", "");
        }
        assert_eq!(host.ok("kk_disown_all"), left, "{was} {now}");
        let calls = host.calls();
        let calls: Vec<&str> = calls.iter().filter_map(|call| call.strip_prefix("dpkg ")).collect();
        assert_eq!(calls, expected, "{was} {now}");
        assert!(!host.path("etc/kubekey").exists());
    }
    let host = Host::new();
    host.write("etc/kubekey/owned", "package\tlibwrap0\tabsent\npackage\tsocat\tabsent\n");
    host.fake("said", "dpkg-query", "-W", "installed");
    host.fake("said", "dpkg", "--purge", "dpkg: error: the database is locked\n");
    host.fake("fail", "dpkg", "--purge", "");
    let error = host.fails("kk_disown_all");
    assert!(error.contains("the database is locked"), "{error}");
    assert_eq!(host.owned(), ["package libwrap0 absent", "package socat absent"]);
    let purged: Vec<String> =
        host.calls().into_iter().filter(|call| call.starts_with("dpkg --purge")).collect();
    assert_eq!(purged, ["dpkg --purge socat", "dpkg --purge libwrap0"], "what needs others goes first");
}

#[test]
fn rpms_go_together_unless_others_need_them() {
    // Each line of `rpms` is a package and what it needs.
    let rpm = r#"#!/bin/sh
cd "${0%/*}/.." || exit
case "$1 $2" in
'-q '*) grep -q "^$2 " rpms ;;
'-e --test')
    shift 2
    others=$(grep -vE "^($(echo "$@" | tr ' ' '|')) " rpms)
    for name; do case $others in *" $name "*) exit 1 ;; esac; done
    ;;
'-e '*)
    shift
    for name; do echo "$name" >>removed; grep -v "^$name " rpms >left; mv left rpms; done
    ;;
esac
"#;
    for (installed, removed, left) in [
        ("socat libwrap libssl \nlibwrap libssl \nlibssl \n", "libssl\nlibwrap\nsocat\n", ""),
        ("socat libwrap \nlibwrap \n", "libwrap\nsocat\n", ""),
        ("socat libwrap \nlibwrap socat \n", "libwrap\nsocat\n", ""),
        (
            "socat libwrap \nlibwrap \nother libwrap \n",
            "socat\n",
            "note: package libwrap is needed by others, it stays\n",
        ),
        ("other \n", "", ""),
    ] {
        let host = Host::new();
        let at = |name: &str| host.directory.path().join(name);
        fs::write(at("rpms"), installed).unwrap();
        fs::write(at("removed"), "").unwrap();
        // Written by another process: see `Host::new`.
        fs::write(at("rpm"), rpm).unwrap();
        host.ok("cp ../rpm ../bin/rpm; chmod 755 ../bin/rpm");
        host.write("etc/kubekey/owned", "rpms\tlibssl libwrap socat\n");
        assert_eq!(host.ok("kk_disown_all"), left, "{installed}");
        assert_eq!(fs::read_to_string(at("removed")).unwrap(), removed, "{installed}");
        assert!(!host.path("etc/kubekey").exists());
    }
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
