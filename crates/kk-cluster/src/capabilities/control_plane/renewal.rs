//! Decides which certificates and kubeconfigs of a control plane are renewed, and why.

use kk_config::Host;
use kk_engine::{Facts, Question, question};
use time::OffsetDateTime;

use super::{moves, note::is_changed};
use crate::{
    base::{
        api_server,
        certificates::{self, Age, CERTIFICATES, Certificate, Validity},
        cluster_state::INITIALISED,
        pki::{ETCD_CLIENT, ETCD_MEMBER},
        questions::CREDENTIALS,
    },
    model::inputs::Inputs,
};

/// Certificates and kubeconfigs that kubeadm creates on a control plane, without CAs, by the names of its phases. The names of
/// kubeconfigs end in `.conf`.
pub(crate) const LEAVES: [&str; 7] = [
    "apiserver",
    "apiserver-kubelet-client",
    "front-proxy-client",
    "admin.conf",
    "super-admin.conf",
    "controller-manager.conf",
    "scheduler.conf",
];

/// The names that a user can specify for renewal: certificates and kubeconfigs of kubeadm, and the certificates that kk creates
/// for etcd.
pub const RENEWABLE: [&str; 9] = {
    let [a, b, c, d, e, f, g] = LEAVES;
    [a, b, c, d, e, f, g, ETCD_MEMBER, ETCD_CLIENT]
};

/// The owner of a kubeconfig; `None` for a certificate.
pub(super) fn kubeconfig(name: &str) -> Option<&str> {
    name.strip_suffix(".conf")
}

/// Certificates and kubeconfigs whose renewal an earlier run began and did not finish.
pub(crate) const BEGUN: Question<Vec<String>> =
    Question::new("renewal", "cat /etc/kubernetes/kubekey/renewal/names 2>/dev/null || :", question::lines);

/// A certificate or kubeconfig that is renewed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Renewed {
    /// Its name.
    pub name: &'static str,
    /// The reason, such as "is missing".
    pub why: String,
}

/// Certificates and kubeconfigs that this run renews on a control plane that was initialised or has joined.
pub(crate) fn of(inputs: &Inputs, host: &Host, facts: &Facts) -> Vec<Renewed> {
    let is_initialised = facts.answer(&INITIALISED).answered() == Some(true);
    let certificates = facts.answer(&CERTIFICATES).answered();
    let Some(there) = certificates.filter(|_| is_initialised && can_sign(facts, "")) else {
        return Vec::new();
    };
    let begun = facts.answer(&BEGUN).answered().unwrap_or_default();
    // Applying changed settings also renews the certificate of the API server. With the previous settings, which may not work at
    // all, nothing would become ready here.
    let mut renewed = Vec::new();
    for name in LEAVES.into_iter().filter(|name| can_sign(facts, name)) {
        let why = trouble(inputs, host, name, there.get(name));
        let moves = if name == "apiserver" { moves::why(inputs, host, facts) } else { None };
        let why = why.or(moves);
        let begun =
            begun.iter().any(|begun| begun == name) && !(name == "apiserver" && is_changed(inputs, host));
        let asked = inputs.command.renewed().contains(name) && there.contains_key(name);
        let why =
            why.or_else(|| begun.then(unfinished)).or_else(|| asked.then(|| "was asked for".to_owned()));
        renewed.extend(why.map(|why| Renewed { name, why }));
    }
    if facts.answer(&CREDENTIALS).answered() == Some(false) {
        renewed.push(Renewed { name: "kubelet.conf", why: "has no valid certificate".to_owned() });
    } else if begun.iter().any(|begun| begun == "kubelet.conf") {
        renewed.push(Renewed { name: "kubelet.conf", why: unfinished() });
    }
    renewed
}

/// The SHA-256 of an empty file, which a power cut may leave.
pub(super) const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// The SHA-256 of a file in `/etc/kubernetes/pki`. An empty file counts as lost.
pub(super) fn sum<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    let file = facts.files.get(&format!("/etc/kubernetes/pki/{name}"))?;
    Some(file.sha256.as_str()).filter(|sum| *sum != NOTHING)
}

/// Whether the CA of a certificate or kubeconfig is on this host with its key. Without the key, kubeadm cannot sign; without the
/// key of the cluster's CA, kk renews nothing at all. Separate findings report this.
pub(super) fn can_sign(facts: &Facts, name: &str) -> bool {
    let own = (name == "front-proxy-client").then_some("front-proxy-ca");
    let is_here = |ca: &str| [".crt", ".key"].iter().all(|end| sum(facts, &format!("{ca}{end}")).is_some());
    is_here("ca") && own.is_none_or(is_here)
}

fn unfinished() -> String {
    "was being replaced when an earlier run ended".to_owned()
}

fn trouble(inputs: &Inputs, host: &Host, name: &str, there: Option<&Certificate>) -> Option<String> {
    let Some(certificate) = there else {
        // Only the first control plane has it, since Kubernetes 1.29.
        return (name != "super-admin.conf").then(|| "is missing".to_owned());
    };
    let Some(validity) = certificate.validity else { return Some("holds no certificate".to_owned()) };
    if !certificate.has_key {
        return Some("has no private key".to_owned());
    }
    if kubeconfig(name).is_some() {
        if !certificate.has_ca {
            return Some("does not contain the CA of the cluster".to_owned());
        }
        let endpoint = inputs.endpoint().url();
        let own = api_server::url(host);
        // Kubeconfigs of administrators contain the endpoint; components of this host may use its own API server.
        if certificate.server != endpoint && (name.contains("admin") || certificate.server != own) {
            return Some(format!("names {}, which is not the API", certificate.server));
        }
    }
    let now = OffsetDateTime::now_utc();
    matches!(validity.age(now), Age::Due | Age::Expired).then(|| validity.words(now))
}

/// The validity of all certificates that this run does not renew.
pub(crate) fn kept(inputs: &Inputs) -> Vec<Validity> {
    let of_host = |(host, facts): (&Host, &Facts)| {
        let renewed = of(inputs, host, facts);
        let mut there = certificates::of(facts);
        there
            .retain(|name, _| LEAVES.contains(&name.as_str()) && !renewed.iter().any(|one| one.name == name));
        there.into_values().filter_map(|certificate| certificate.validity).collect::<Vec<_>>()
    };
    inputs.control_planes().into_iter().flat_map(of_host).collect()
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use kk_engine::FileFact;

    use super::*;
    use crate::{
        base::{
            encoding::base64,
            host_layout::{ADMIN_CONF, CLUSTER_CA},
        },
        capabilities::kubeconfig::{Kubeconfig, USABLE, USABLE_BY_USER},
        model::capability::Capability as _,
        testing::{self, certificate},
    };

    /// The answer of a control plane whose certificates are valid for 100 days, except the certificate `other`, which has this
    /// head and is valid for `left` days.
    fn answer(other: &str, head: &str, left: i64) -> String {
        let (good, bad) = (certificate(365, 100), certificate(365, left));
        let mut text = String::new();
        for name in LEAVES {
            let is_other = name == other;
            let server = if name.contains("admin") {
                "https://lb.kubesphere.local:6443"
            } else {
                "https://10.0.0.11:6443"
            };
            let own =
                if kubeconfig(name).is_some() { format!("key ca {server}") } else { "key - -".to_owned() };
            let head = if is_other && !head.is_empty() { head } else { &own };
            if head == "gone" {
                continue;
            }
            let pem = if is_other { &bad } else { &good };
            let content = if kubeconfig(name).is_some() { base64(pem.as_bytes()) } else { pem.clone() };
            let _ = writeln!(text, "@{name} {head}\n{}", content.trim());
        }
        text + "end\n"
    }

    /// The names that are renewed on a control plane with these facts, and the reasons.
    async fn renewed(spoil: impl Fn(&mut Facts)) -> Vec<String> {
        let words = |inputs: &Inputs, host: &Host, facts: &Facts| {
            of(inputs, host, facts).into_iter().map(|one| format!("{} {}", one.name, one.why)).collect()
        };
        on_control_plane(spoil, words).await
    }

    /// The probed hosts of a running cluster.
    fn running(spec: &kk_config::Spec) -> crate::base::probed::Probed {
        let mut probed = testing::fresh(spec);
        let facts = probed.facts.get_mut(&spec.first_control_plane().name).unwrap();
        for path in [
            CLUSTER_CA,
            "/etc/kubernetes/pki/ca.key",
            "/etc/kubernetes/pki/front-proxy-ca.crt",
            "/etc/kubernetes/pki/front-proxy-ca.key",
            "/etc/kubernetes/kubelet.conf",
        ] {
            facts.files.insert(path.into(), FileFact { sha256: "same".into(), ..FileFact::default() });
        }
        facts.reply(&INITIALISED, "yes");
        facts.reply(&CREDENTIALS, "yes");
        facts.reply(&CERTIFICATES, answer("", "", 100));
        probed
    }

    /// Returns what `look` reports on a control plane of a running cluster with these facts.
    async fn on_control_plane<T>(
        spoil: impl Fn(&mut Facts),
        look: impl Fn(&Inputs, &Host, &Facts) -> T,
    ) -> T {
        let spec = testing::sample("three-nodes.yaml");
        let mut probed = running(&spec);
        let host = spec.first_control_plane();
        spoil(probed.facts.get_mut(&host.name).unwrap());
        let directory = tempfile::tempdir().unwrap();
        let session = testing::session(spec.clone(), directory.path());
        let inputs = session.create_inputs(&probed).await.unwrap();
        look(&inputs, host, &probed.facts[&host.name])
    }

    #[tokio::test]
    async fn who_uses_the_administrators_kubeconfig_gets_the_new_one_in_the_same_run() {
        let changes = |inputs: &Inputs, host: &Host, facts: &Facts| {
            std::fs::create_dir_all(&inputs.directory).unwrap();
            let source = format!("same https://{}:6443", inputs.endpoint().address().unwrap());
            for (name, text) in [("kubeconfig", "old"), (".kubeconfig.source", source.as_str())] {
                std::fs::write(inputs.directory.join(name), text).unwrap();
            }
            let tasks = Kubeconfig.install(inputs).unwrap();
            let actions =
                tasks.iter().filter_map(|task| task.hosts.get(&host.name)).flat_map(|work| &work.actions);
            actions.filter(|action| action.check(facts).is_needed()).count()
        };
        for (left, of_user, changed) in
            [(100, "yes", 0), (29, "yes", 3), (-1, "yes", 3), (-1, "no right", 2), (-1, "no home", 2)]
        {
            let spoil = |facts: &mut Facts| {
                let admin = FileFact { sha256: "same".into(), ..FileFact::default() };
                facts.files.insert(ADMIN_CONF.into(), admin);
                facts.reply(&USABLE, "yes");
                facts.reply(&USABLE_BY_USER, of_user);
                facts.reply(&CERTIFICATES, answer("admin.conf", "", left));
            };
            assert_eq!(on_control_plane(spoil, changes).await, changed, "{left} {of_user}");
        }
    }

    #[tokio::test]
    async fn what_has_expired_is_damaged_or_gone_is_made_anew_and_nothing_else() {
        assert_eq!(renewed(|_| {}).await, [""; 0]);
        for (name, head, left, why) in [
            ("apiserver", "", 59, ""),
            ("apiserver", "", 29, "expires on "),
            ("front-proxy-client", "", -2, "has expired on "),
            ("apiserver-kubelet-client", "gone", 100, "is missing"),
            ("super-admin.conf", "gone", 100, ""),
            ("admin.conf", "gone", 100, "is missing"),
            ("apiserver", "- - -", 100, "has no private key"),
            ("scheduler.conf", "key - https://10.0.0.11:6443", 100, "does not contain the CA"),
            ("admin.conf", "key ca https://192.0.2.9:6443", 100, "names https://192.0.2.9:6443"),
            ("admin.conf", "key ca https://10.0.0.11:6443", 100, "names https://10.0.0.11:6443"),
            ("controller-manager.conf", "key ca https://lb.kubesphere.local:6443", 100, ""),
        ] {
            let found = renewed(|facts| facts.reply(&CERTIFICATES, answer(name, head, left))).await;
            assert_eq!(found.len(), usize::from(!why.is_empty()), "{name} {head} {left}: {found:?}");
            assert!(found.iter().all(|found| found.starts_with(&format!("{name} {why}"))), "{found:?}");
        }
    }

    #[tokio::test]
    async fn what_nobody_can_sign_here_is_left_as_it_is() {
        for (lost, due, renews) in [
            ("ca.key", "apiserver", false),
            ("front-proxy-ca.key", "apiserver", true),
            ("front-proxy-ca.key", "front-proxy-client", false),
            ("front-proxy-ca.crt", "front-proxy-client", false),
        ] {
            for is_empty in [false, true] {
                let spoil = |facts: &mut Facts| {
                    let path = format!("/etc/kubernetes/pki/{lost}");
                    facts.files.remove(&path);
                    if is_empty {
                        facts.files.insert(path, FileFact { sha256: NOTHING.into(), ..FileFact::default() });
                    }
                    facts.reply(&CERTIFICATES, answer(due, "", 20));
                };
                assert_eq!(!renewed(spoil).await.is_empty(), renews, "{lost} {due} {is_empty}");
            }
        }
    }

    #[tokio::test]
    async fn an_api_server_that_moves_or_cannot_reach_etcd_any_more_is_made_anew() {
        use crate::{base::questions::SETTINGS, capabilities::etcd::ENVIRONMENT};
        let first = testing::sample("three-nodes.yaml").first_control_plane().internal_address;
        let at = |address: &str, etcd: &str| {
            format!("advertise-address\t{address}\netcd-servers\thttps://{etcd}:2379\n")
        };
        let own = first.to_string();
        let stays = renewed(|facts| facts.reply(&SETTINGS, at(&own, &own))).await;
        assert_eq!(stays, [""; 0]);
        let moves = renewed(|facts| facts.reply(&SETTINGS, at("192.0.2.9", &own))).await;
        assert_eq!(moves, ["apiserver is for 192.0.2.9"]);
        let stranded = renewed(|facts| {
            facts.reply(&SETTINGS, at(&own, "192.0.2.9"));
            let peer = "ETCD_INITIAL_ADVERTISE_PEER_URLS=https://192.0.2.9:2380\nMEMBER=yes\n";
            facts.reply(&ENVIRONMENT, format!("ETCD_DATA_DIR=/var/lib/etcd\n{peer}"));
        });
        assert_eq!(
            stranded.await,
            ["apiserver belongs to an API server that connects to the previous \
                                     address of etcd"]
        );
    }

    #[tokio::test]
    async fn what_was_asked_for_is_made_anew_where_there_is_one() {
        let ask = |name: &str, head: &str| {
            let (name, text) = (name.to_owned(), answer(name, head, 100));
            async move {
                let (spec, directory) = (testing::sample("three-nodes.yaml"), tempfile::tempdir().unwrap());
                let mut probed = running(&spec);
                let host = spec.first_control_plane();
                probed.facts.get_mut(&host.name).unwrap().reply(&CERTIFICATES, text);
                let session = testing::session(spec.clone(), directory.path());
                let inputs = session
                    .inputs_for(crate::model::command::Command::Renew([name].into()), &probed)
                    .await
                    .unwrap();
                of(&inputs, host, &probed.facts[&host.name])
                    .into_iter()
                    .map(|one| one.name)
                    .collect::<Vec<_>>()
            }
        };
        for name in LEAVES {
            assert_eq!(ask(name, "").await, [name]);
        }
        assert!(ask("super-admin.conf", "gone").await.is_empty(), "only the first control plane has it");
        assert!(ask(ETCD_CLIENT, "").await.is_empty());
    }

    #[tokio::test]
    async fn an_earlier_run_is_taken_up_and_no_answer_renews_nothing() {
        let begun = |facts: &mut Facts| facts.reply(&BEGUN, "front-proxy-client\nkubelet.conf\n");
        let why = "was being replaced when an earlier run ended";
        assert_eq!(
            renewed(begun).await,
            [format!("front-proxy-client {why}"), format!("kubelet.conf {why}")]
        );
        // There is no note, so the settings are applied in the same run.
        assert_eq!(renewed(|facts| facts.reply(&BEGUN, "apiserver\n")).await, [""; 0]);
        assert_eq!(renewed(|facts| facts.time_out(&CERTIFICATES)).await, [""; 0]);
        assert_eq!(renewed(|facts| facts.reply(&INITIALISED, "no")).await, [""; 0]);
        let lost = |facts: &mut Facts| facts.reply(&CREDENTIALS, "no");
        assert_eq!(renewed(lost).await, ["kubelet.conf has no valid certificate"]);
    }
}
