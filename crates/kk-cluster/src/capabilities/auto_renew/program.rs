//! Composes the script that the timer starts.

use kk_config::Host;
use kk_engine::{HOST_LOCK, LIB};

use crate::{
    base::{api_server, host_layout::KUBECTL, shell::script},
    capabilities::{
        balancer::kube_vip,
        control_plane::{RENEW, RESTART},
        kubeconfig::MAY_BECOME_ROOT,
    },
    model::{inputs::Inputs, kubeadm},
};

const DAY: u64 = 24 * 60 * 60;

/// The beginning of the script, before its functions. It waits longer for a run of kk than kk does for another run: a host with a
/// lock is left alone for an hour after the last sign of that run, or until the lock is released.
const BEGIN: &str = "#!/bin/sh
# Written by kk.
set -eu
umask 077
export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
unset KK_ROOT KK_STATE_READY
work=$(mktemp -d /run/k8s-certs-renew.XXXXXX)
cd \"$work\"
KK_OWNER=k8s-certs-renew KK_RUN=$$-$(date +%s) KK_NAME='the timer k8s-certs-renew of this host' KK_IDLE=3600
";

/// Certificates are renewed when they expire in less than this number of seconds: the rule of
/// [`Age::Due`](crate::base::certificates::Age).
pub(super) fn seconds_left(inputs: &Inputs) -> u64 {
    (inputs.spec.kubernetes.certificate_seconds / 3).min(30 * DAY)
}

pub(super) fn text(inputs: &Inputs, host: &Host) -> String {
    let server = api_server::url(host);
    let seconds = seconds_left(inputs).to_string();
    let init = kubeadm::node_document(inputs, host);
    let variables = [
        ("node", host.name.as_str()),
        ("server", &server),
        ("user", &host.user),
        ("seconds", &seconds),
        ("init", &init),
    ];
    let [lease, renew, follow] =
        [include_str!("lease.sh"), include_str!("renew.sh"), include_str!("follow.sh")];
    // Before the end: if this fails, the next run renews admin.conf again, and restarts kube-vip.
    let balancer = format!(
        "restart_kube_vip() {{\n{}}}\ncase \" $due \" in *' admin.conf '*)\n    \
         if [ -e /etc/kubernetes/manifests/kube-vip.yaml ]; then restart_kube_vip; fi ;;\nesac\n",
        kube_vip::RESTART
    );
    let end = "follow\necho \"renewed: $due\"\n";
    let variables = script(&variables, KUBECTL);
    let parts =
        [LIB, HOST_LOCK, &variables, lease, MAY_BECOME_ROOT, follow, renew, RENEW, RESTART, &balancer, end];
    BEGIN.to_owned() + &parts.concat()
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::MetadataExt as _, path::Path, process::Command};

    use crate::{base::shell::script, capabilities::kubeconfig::MAY_BECOME_ROOT, testing};

    /// The expiration table of kubeadm on a host where the certificate `other` expires in `days` and all others in 200 days.
    fn table(other: &str, days: &str) -> String {
        let line = |name: &str| {
            let days = if name == other { days } else { "200" };
            format!(
                "printf '%-26s %s   %sd  ca  no\\n' {name} \"$(date -u -d '+{days} days' '+%b %d, %Y %H:%M UTC')\" {days}\n"
            )
        };
        let names = ["admin.conf", "apiserver", "apiserver-kubelet-client", "controller-manager.conf"];
        let names =
            names.into_iter().chain(["front-proxy-client", "scheduler.conf", "super-admin.conf", "ca"]);
        "echo 'CERTIFICATE EXPIRES RESIDUAL TIME'\n".to_owned() + &names.map(line).collect::<String>()
    }

    /// An API whose Lease is a file. `create` fails if the Lease exists, and `replace` fails for another resource version.
    const KUBECTL: &str = r#"
        field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$2"; }
        for last; do :; done
        case "$*" in
        *create*) [ ! -e HERE/lease ] || { echo 'Error (AlreadyExists)' >&2; exit 1; }; cp "$last" HERE/lease; echo created >>HERE/calls ;;
        *"get lease"*) echo "7 $(field renewTime HERE/lease) $(field holderIdentity HERE/lease)" ;;
        *replace*) [ "$(field resourceVersion "$last")" = 7 ] || exit 1; cp "$last" HERE/lease; echo replaced >>HERE/calls ;;
        *delete*) rm -f HERE/lease ;;
        *"get pods"*) cat HERE/api-servers ;;
        *--raw*) ;;
        *"get pod "*) if [ -e HERE/stopped ]; then echo 'true containerd://new'; else echo 'true containerd://old'; fi ;;
        esac"#;

    const KUBEADM: &str = r#"
        pki=$(sed -n 's/^certificatesDir: //p' aside.yaml 2>/dev/null)
        case "$*" in
        *check-expiration*) cat config.yaml >HERE/config; . HERE/table ;;
        "certs renew"*) [ -s "$pki/$3.crt" ]; echo new >"$pki/$3.crt"; echo new >"$pki/$3.key" ;;
        "init phase kubeconfig"*) echo new >"$8/$4.conf" ;;
        esac"#;

    const CRICTL: &str = r#"
        for last; do :; done
        part=${last#io.kubernetes.pod.name=} part=${part%-node?}
        case "$*" in
        pods*) echo "pod-$part" ;;
        inspectp*) echo uid ;;
        *rmp*) echo "again ${last#pod-}" >>HERE/calls; touch HERE/stopped ;;
        "ps -q --state running"*) echo vip ;;
        stop*) echo "stopped $last" >>HERE/calls ;;
        *"ps -a"*) [ ! -e "HERE/kubernetes/manifests/$part.yaml" ] || if [ -e HERE/stopped ]; then echo new; else echo old; fi ;;
        esac"#;

    /// The time that is this number of seconds from now.
    fn since(seconds: i64) -> String {
        let date = format!("date -u -d '{seconds} seconds' +%Y-%m-%dT%H:%M:%S.000000Z");
        String::from_utf8(Command::new("sh").args(["-c", &date]).output().unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    }

    struct Host(tempfile::TempDir);

    impl Host {
        fn new() -> Self {
            let host = Self(tempfile::tempdir().unwrap());
            for directory in ["kubernetes/pki", "kubernetes/manifests", "kubernetes/kubekey", "run", "root"] {
                fs::create_dir_all(host.path(directory)).unwrap();
            }
            for (name, text) in
                [("kubeadm", KUBEADM), ("kubectl", KUBECTL), ("crictl", CRICTL), ("systemctl", "")]
            {
                testing::program(
                    host.0.path(),
                    name,
                    &text.replace("HERE", &host.path("").display().to_string()),
                );
            }
            testing::program(host.0.path(), "sleep", "exit 0");
            host.write("kubernetes/kubekey/cluster.yaml", "---\ncertificatesDir: /etc/kubernetes/pki\n");
            host.write("api-servers", "kube-apiserver-node1 True\nkube-apiserver-node2 True\n");
            for name in ["apiserver", "apiserver-kubelet-client", "front-proxy-client"] {
                host.write(&format!("kubernetes/pki/{name}.crt"), "old");
            }
            for part in ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
                host.write(&format!("kubernetes/manifests/{part}.yaml"), "manifest");
            }
            for name in ["kubernetes/admin.conf", "kubernetes/scheduler.conf", "root/config"] {
                host.write(name, "old");
            }
            host
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            Path::new(self.0.path()).join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::write(self.path(name), text).unwrap();
        }

        fn read(&self, name: &str) -> String {
            fs::read_to_string(self.path(name)).unwrap_or_default().trim().to_owned()
        }

        fn lease(&self, holder: &str, since: &str) {
            self.write("lease", &format!("\"holderIdentity\":\"{holder}\",\"renewTime\":\"{since}\"\n"));
        }

        /// Runs the script of the first control plane, where the certificate `other` expires in `days`. Returns whether it
        /// succeeds, and its output.
        async fn renew(&self, other: &str, days: &str) -> (bool, String) {
            self.write("table", &table(other, days));
            self.run().await
        }

        async fn run(&self) -> (bool, String) {
            let (mut spec, directory) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
            spec.kubernetes.auto_renew_certs = true;
            let probed = testing::fresh(&spec);
            let session = testing::session(spec, directory.path());
            let inputs = session.create_inputs(&probed).await.unwrap();
            let here = self.path("").display().to_string();
            let text = super::text(&inputs, inputs.spec.first_control_plane())
                .replace("/etc/kubernetes", &format!("{here}kubernetes"))
                .replace("/root/.kube", &format!("{here}root"))
                .replace("$KK_ROOT/run", &format!("{here}run"))
                .replace("$KK_ROOT/etc", &format!("{here}etc"))
                .replace("/run/k8s", &format!("{here}run/k8s"))
                .replace("PATH=/usr/local/sbin", &format!("PATH={here}:/usr/local/sbin"))
                .replace("+ 1500", "+ 0");
            self.write("program", &text);
            let output = Command::new("sh").arg(self.path("program")).output().unwrap();
            let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap());
            assert!(
                !self.path("run").read_dir().unwrap().any(|one| one.unwrap().path().is_dir()),
                "it left its directory"
            );
            (output.status.success(), said.concat())
        }
    }

    #[tokio::test]
    async fn what_ends_late_is_left_and_disturbs_nobody() {
        let host = Host::new();
        let (ok, said) = host.renew("apiserver", "31").await;
        assert!(ok && said.starts_with("nothing to renew; the first certificate ends on "), "{said}");
        assert_eq!(
            (host.read("calls"), host.read("kubernetes/pki/apiserver.crt")),
            (String::new(), "old".into())
        );
        assert!(
            host.read("config").starts_with("---\napiVersion: kubeadm.k8s.io/")
                && host.read("config").contains("advertiseAddress")
        );
    }

    #[tokio::test]
    async fn what_ends_soon_is_renewed_in_turn_and_only_its_readers_start_again() {
        let host = Host::new();
        for days in ["29", "-3"] {
            let (ok, said) = host.renew("apiserver", days).await;
            assert!(ok && said.contains("renewed: apiserver\n"), "{said}");
            assert_eq!(host.read("kubernetes/pki/apiserver.crt"), "new");
            assert_eq!(host.read("calls"), "created\nagain kube-apiserver", "{days}");
            assert_eq!(
                (host.read("lease"), host.read("run/kubekey.lock")),
                Default::default(),
                "both are free again"
            );
            fs::remove_file(host.path("calls")).unwrap();
            fs::remove_file(host.path("stopped")).unwrap();
        }
        let (ok, said) = host.renew("admin.conf", "1").await;
        assert!(ok, "{said}");
        assert_eq!(
            (host.read("kubernetes/admin.conf"), host.read("root/config")),
            ("new".into(), "new".into())
        );
        assert_eq!(host.read("calls"), "created", "nothing starts again for it");
        host.write("root/config", "somebody's");
        assert!(host.renew("admin.conf", "1").await.0);
        assert_eq!(host.read("root/config"), "somebody's");
    }

    /// kube-vip reads the administrator's kubeconfig only when it starts.
    #[tokio::test]
    async fn kube_vip_starts_again_after_its_kubeconfig_was_renewed() {
        for (other, calls) in
            [("admin.conf", "created\nstopped vip"), ("apiserver", "created\nagain kube-apiserver")]
        {
            let host = Host::new();
            host.write("kubernetes/manifests/kube-vip.yaml", "manifest");
            let (ok, said) = host.renew(other, "1").await;
            assert!(ok, "{said}");
            assert_eq!(host.read("calls"), calls, "{other}");
        }
    }

    #[tokio::test]
    async fn one_that_was_killed_is_taken_up() {
        let host = Host::new();
        fs::create_dir(host.path("kubernetes/kubekey/renewal")).unwrap();
        host.write("kubernetes/kubekey/renewal/names", "scheduler.conf\n");
        host.write("kubernetes/kubekey/renewal/copies", &format!("{}\n", host.path("root/config").display()));
        host.lease("node1", "2020-01-02T03:04:05.000000Z");
        let (ok, said) = host.renew("", "").await;
        assert!(ok && said.contains("renewed: scheduler.conf"), "{said}");
        assert_eq!(host.read("calls"), "replaced\nagain kube-scheduler");
        assert!(!host.path("kubernetes/kubekey/renewal").exists());
    }

    #[tokio::test]
    async fn a_manifest_that_was_away_when_the_host_lost_its_power_comes_back() {
        let host = Host::new();
        fs::create_dir_all(host.path("kubernetes/kubekey/manifests")).unwrap();
        let manifest = "kubernetes/manifests/kube-apiserver.yaml";
        fs::rename(host.path(manifest), host.path("kubernetes/kubekey/manifests/kube-apiserver.yaml"))
            .unwrap();
        let (ok, said) = host.renew("apiserver", "31").await;
        assert!(ok, "{said}");
        assert_eq!(host.read(manifest), "manifest");
    }

    /// Days that are left, a change of the host, the expected output, and whether certificates are renewed.
    type Spoil = (&'static str, fn(&Host), &'static str, bool);

    #[tokio::test]
    async fn nothing_restarts_while_others_do() {
        let spoils: [Spoil; 7] = [
            ("29", |host| host.lease("node2", &since(-60)), "it is the turn of node2", false),
            // A wrong clock set this time, so the turn would never end.
            ("29", |host| host.lease("node2", &since(86400)), "renewed", true),
            ("29", |host| host.lease("node2", "2020-01-02T03:04:05.000000Z"), "renewed", true),
            (
                "29",
                |host| host.write("api-servers", "kube-apiserver-node2 False\n"),
                "restarted: kube-apiserver-node2",
                false,
            ),
            ("29", |host| host.write("api-servers", ""), "the API names none", false),
            ("2", |host| host.write("api-servers", "kube-apiserver-node2 False\n"), "little time left", true),
            (
                "29",
                |host| host.write("run/kubekey.lock", "other\nrun\nroot@machine:/dir\n"),
                "another kk works on this host: root@machine:/dir",
                false,
            ),
        ];
        for (days, spoil, words, renewed) in spoils {
            let host = Host::new();
            spoil(&host);
            let lock = host.read("run/kubekey.lock");
            let (ok, said) = host.renew("apiserver", days).await;
            assert!(ok == renewed && said.contains(words), "{words}: {said}");
            assert_eq!(
                host.read("kubernetes/pki/apiserver.crt"),
                if renewed { "new" } else { "old" },
                "{words}"
            );
            assert_eq!(host.read("run/kubekey.lock"), lock, "{words}");
            assert_eq!(host.read("lease").contains("node2"), words.contains("turn of"), "{words}");
        }
    }

    #[tokio::test]
    async fn a_copy_that_cannot_be_written_lets_nothing_restart_again() {
        let host = Host::new();
        testing::program(host.0.path(), "chown", "exit 1");
        for days in ["1", "200"] {
            let (ok, said) = host.renew("apiserver", days).await;
            assert!(!ok && said.contains("copies of admin.conf cannot be written"), "{said}");
            assert_eq!(host.read("calls"), "created\nagain kube-apiserver");
        }
        fs::remove_file(host.path("chown")).unwrap();
        assert!(host.renew("apiserver", "200").await.0);
        assert_eq!(host.read("calls"), "created\nagain kube-apiserver");
        assert!(!host.path("kubernetes/kubekey/renewal").exists());
    }

    #[test]
    fn the_copy_of_the_user_is_written_as_that_user() {
        let host = Host::new();
        let here = host.0.path();
        let (user, owner) = testing::other_user(here, "home");
        let copy = host.path("home/.kube/config");
        fs::create_dir(host.path("home/.kube")).unwrap();
        host.write("home/.kube/config", "old");
        for path in [&copy, &host.path("home/.kube")] {
            std::os::unix::fs::chown(path, Some(owner), None).unwrap();
        }
        fs::create_dir(host.path("aside")).unwrap();
        host.write("aside/copies", &format!("{}\n", copy.display()));
        let text = [MAY_BECOME_ROOT, include_str!("follow.sh")].concat();
        let text = script(&[("user", &user), ("aside", "aside")], &text)
            .replace("/etc/kubernetes", &host.path("kubernetes").display().to_string());
        let text = format!("{}{text}follow\n", testing::library(here));
        let write = || {
            host.write("kubernetes/admin.conf", "new");
            testing::run_script(here, &text)
        };
        testing::program(here, "sudo", "echo '    (ALL) NOPASSWD: ALL'");
        let output = write();
        assert!(output.status.success(), "{output:?}");
        let data = fs::symlink_metadata(&copy).unwrap();
        assert_eq!(
            (host.read("home/.kube/config"), data.uid(), data.mode() & 0o7777),
            ("new".into(), owner, 0o600)
        );
        assert!(!host.path("aside").exists());
        if owner == 65534 {
            testing::program(here, "sudo", "echo '    (ALL) ALL'");
            host.write("home/.kube/config", "old");
            fs::create_dir(host.path("aside")).unwrap();
            host.write("aside/copies", &format!("{}\n", copy.display()));
            let output = write();
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(output.status.success() && said.contains("not renewed"), "{said}");
            assert_eq!(host.read("home/.kube/config"), "old");
            assert!(!host.path("aside").exists());
            testing::program(here, "sudo", "echo '    (ALL) NOPASSWD: ALL'");
            // The user replaces the directory by a symbolic link to a directory of root.
            fs::rename(host.path("home/.kube"), host.path("home/.k")).unwrap();
            fs::create_dir(host.path("victims")).unwrap();
            host.write("victims/config", "root's");
            std::os::unix::fs::symlink(host.path("victims"), host.path("home/.kube")).unwrap();
            fs::create_dir(host.path("aside")).unwrap();
            host.write("aside/copies", &format!("{}\n", copy.display()));
            let output = write();
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(said.contains("copies of admin.conf cannot be written"), "{said}");
            assert_eq!(host.read("victims/config"), "root's");
            assert_eq!(fs::read_dir(host.path("victims")).unwrap().count(), 1);
        }
    }

    #[tokio::test]
    async fn no_answer_is_not_a_long_time() {
        let host = Host::new();
        host.write("table", &(table("", "").replace("apiserver ", "'!MISSING! apiserver' ")));
        let (ok, said) = host.run().await;
        assert!(!ok && said.contains("does not say until when apiserver is valid"), "{said}");
        host.write("table", "echo no >&2; exit 1");
        assert!(!host.run().await.0);
        assert_eq!(host.read("calls"), "");
    }
}
