//! Units, kernel settings and modules, and waits.

use crate::host::Host;

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
