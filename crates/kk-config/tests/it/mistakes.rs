//! Mistakes that users make in Cluster files, and files that look like mistakes and are none: each file of `tests/mistakes/` gets
//! exactly the findings that the table says.

use kk_config::{Diagnostic, Overrides, load};
use std::collections::BTreeSet;
use std::path::Path;

/// Stands for every secret in the files.
const SENTINEL: &str = "SENTINEL";

/// What becomes of a file.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It loads without a warning.
    Valid,
    /// It loads with this many warnings.
    Warning(usize),
    /// It is refused with this many errors.
    Error(usize),
}

use Outcome::{Error, Valid, Warning};

/// The file, what becomes of it, and texts that the findings hold.
#[rustfmt::skip]
const CASES: &[(&str, Outcome, &[&str])] = &[
    ("addons-over-http", Warning(2), &["plain HTTP: an attacker on the network path can replace the content"]),
    ("address-twice-capitals", Error(1), &["two hosts have the address `alder.example`"]),
    ("address-twice-internal-v6", Error(1), &["two hosts have the address `fd00::1`"]),
    ("address-twice-v6", Error(1), &["two hosts have the address `fd00::1`"]),
    ("address-twice-with-blanks", Error(1), &["two hosts have the address `10.20.0.1`"]),
    ("admission-plugins", Error(3), &["`PodSecurityPolicy`", "PodSecurity is on", "did you mean `AlwaysPullImages`", "`PodTopologyLabels`", "use Kubernetes 1.33 or newer"]),
    ("admission-plugins-known", Valid, &[]),
    ("anchors-in-maps", Valid, &[]),
    ("bind-address-with-haproxy", Error(1), &["with `internalLoadbalancer: haproxy` the API server must listen at all addresses", "bind-address-with-haproxy:9:37"]),
    ("bind-address-with-kube-vip", Valid, &[]),
    ("blank-missing-before-key", Error(1), &["a blank is missing after `-`"]),
    ("blank-missing-block", Error(1), &["a blank is missing after `address:`"]),
    ("blank-missing-flow", Error(1), &["a blank is missing after `password:`", "password:***"]),
    ("blank-missing-flow-other", Error(1), &["a blank is missing after `port:`"]),
    ("blank-missing-in-first-key", Error(1), &["a blank is missing after `name:`"]),
    ("blank-missing-item", Error(1), &["a blank is missing after `-`", "-birch"]),
    ("blank-missing-second-item", Error(1), &["a blank is missing after `-`", "-cedar"]),
    ("blank-missing-top", Error(1), &["a blank is missing after `kind:`"]),
    ("cgroupfs", Error(1), &["cgroup driver of systemd"]),
    ("chinese-comments", Valid, &[]),
    ("control-planes-without-balancer", Warning(1), &["2 control planes without a load balancer", "`address: 10.20.0.1` keeps it as it is"]),
    ("curly-quotes", Error(1), &["a typographic quote `“` (U+201C), not `\"`"]),
    ("curly-quotes-of-secret", Error(1), &["a typographic quote"]),
    ("direct-routing-without-vxlan", Warning(1), &["the backend host-gw only has plain routes"]),
    ("directories", Error(4), &["the registry (`/data`)", "containerd (`/data/containerd`)", "overlap"]),
    ("directories-apart", Valid, &[]),
    ("directories-not-kept", Error(3), &["is below `/var/tmp`: systemd removes old files there", "is below `/run`: a restart of the host empties it", "is below `/proc`: only the kernel makes files there"]),
    ("directories-of-others", Error(3), &["belongs to the kubelet", "is below `/tmp`: systemd removes old files there, and a restart of the host can empty it", "belongs to Kubernetes"]),
    ("directory-of-kubelet", Error(1), &["the kubelet (`/data/etcd/kubelet`)"]),
    ("domain-address-of-balancer", Valid, &[]),
    ("domain-host-own-dns", Error(1), &["names the host `birch`"]),
    ("domain-localhost", Error(1), &["resolves to each host itself"]),
    ("domain-only-control-plane", Valid, &[]),
    ("domain-other-address", Error(1), &["`10.20.0.77` is an address, but the API is at 10.20.0.1"]),
    ("domain-v6", Error(1), &["fd00::5"]),
    ("domain-worker", Error(1), &["`cedar` names the host `cedar`, but the API is at 10.20.0.1"]),
    ("domain-worker-long", Error(1), &["names the host `cedar`"]),
    ("earlier-field-of-wrong-type", Error(1), &["`spec.etcd.backupPeriod` must be a whole number", "earlier-field-of-wrong-type:7"]),
    ("earlier-fields", Warning(12), &["`spec.hosts[].id`", "`spec.registry.namespaceOverride`", "reads it as `spec.etcd.backupDir`", "reads it as `spec.etcd.backupPeriod`", "reads it as `spec.etcd.keepBackupNumber`", "reads it as `spec.etcd.backupScript`", "reads it as `spec.network.multusCNI.enabled`", "reads it as `spec.network.flannel.directRouting`", "reads it as `spec.registry.containerdDataDir`", "`plainHTTP` of `hub.example:5000`", "reads it as `bash`", "without effect yet"]),
    ("earlier-fields-twice", Warning(2), &["without effect: `spec.kubernetes.etcdBackupDir`", "set `plainHTTP` of the registry in `spec.registry.auths`"]),
    ("en-dash-flag", Error(1), &["an en dash"]),
    ("en-dash-item", Error(1), &["an en dash `–` (U+2013), not `-`"]),
    ("en-dash-range", Error(1), &["is not a host or a range", "an en dash `–` (U+2013), not `-`"]),
    ("etcd-setting-twice", Error(1), &["`ETCD_MAX_TXN_OPS` is given twice"]),
    ("etcd-settings-free", Valid, &[]),
    ("etcd-settings-of-kk", Error(5), &["spec.etcd.dataDir", "spec.etcd.quotaBackendBytes", "spec.etcd.peerPort", "`ETCD_CONFIG_FILE`", "`ETCD_PEER_AUTO_TLS`"]),
    ("extensions", Valid, &[]),
    ("files-in-pod", Valid, &[]),
    ("files-not-in-pod", Error(4), &["`/etc/kubernetes/audit.yaml` of `--audit-policy-file` is not in the pod of kube-apiserver", "put the file into /etc/kubernetes/pki", "`/root/ca.crt` of `--root-ca-file`", "kube-scheduler", "audit-log-path=-"]),
    ("first-version", Warning(2), &["kk reads it as v1alpha2", "kk sets `dnsDomain` to it"]),
    ("flag-gone", Error(5), &["removed in 1.24", "write bind-address", "containerd runs the network plugin"]),
    ("flag-known-for-long", Valid, &[]),
    ("flag-not-yet", Error(1), &["new in 1.36"]),
    ("flag-of-kk", Error(10), &["spec.network.kubeServiceCIDR", "spec.network.kubePodsCIDR", "spec.kubernetes.nodeCidrMaskSize", "spec.kubernetes.kubeletConfiguration", "`internalAddress` of the host", "`name` of the host", "the containerd that kk installs"]),
    ("flag-twice", Error(1), &["the flag `v` is given twice"]),
    ("flag-unknown", Error(3), &["did you mean `audit-log-maxsize`", "it is a flag of kube-apiserver", "has no flag `--no-such-flag` of the kubelet"]),
    ("flag-with-underscores", Valid, &[]),
    ("flag-with-underscores-gone", Error(1), &["removed in 1.35", "containerd has the pause image"]),
    ("flags-deprecated", Valid, &[]),
    ("flags-deprecated-before-they-go", Valid, &[]),
    ("flags-deprecated-gone", Error(3), &["`--volume-host-cidr-denylist` here (removed in 1.31)", "`--volume-host-allow-local-loopback` here (removed in 1.31)", "`--cloud-provider-gce-lb-src-cidrs` here (removed in 1.31)"]),
    ("flags-of-kk-with-its-values", Valid, &[]),
    ("flags-of-kube-proxy", Warning(7), &["`ipvs.strictARP`", "`metricsBindAddress`", "`conntrack.maxPerCore`", "`nodePortAddresses`", "set `spec.kubernetes.proxyMode`", "`logging.verbosity`", "`no-such` in kubeProxyArgs"]),
    ("foreign-cluster-api", Error(1), &["Cluster API", "not a Cluster file of kk"]),
    ("foreign-k0sctl", Error(1), &["k0sctl", "not a Cluster file of kk"]),
    ("foreign-k3s", Error(1), &["K3s", "not a Cluster file of kk"]),
    ("foreign-kubeadm", Error(1), &["kubeadm", "not a Cluster file of kk"]),
    ("foreign-kubespray", Error(1), &["Kubespray", "not a Cluster file of kk"]),
    ("foreign-object", Error(1), &["an object of kind `Deployment`", "not a Cluster file of kk"]),
    ("foreign-talos", Error(1), &["Talos", "not a Cluster file of kk"]),
    ("full-width-blank", Error(1), &["a full-width blank (U+3000)"]),
    ("full-width-bracket", Error(1), &["a full-width bracket `］` (U+FF3D), not `]`"]),
    ("full-width-colon", Error(1), &["a full-width colon `：` (U+FF1A), not `:`"]),
    ("full-width-comma", Error(1), &["a full-width comma `，` (U+FF0C), not `,`"]),
    ("full-width-text-before-error", Error(1), &["put secrets into quotes"]),
    ("gate-gone-with-underscores", Error(1), &["no feature gate `ExperimentalHostUserNamespaceDefaulting`"]),
    ("gate-misspelt", Warning(5), &["did you mean `SidecarContainers`", "did you mean `NodeSwap`", "`NoSuchThing` is not known as a feature gate"]),
    ("gate-not-yet", Warning(1), &["no feature gate `GangScheduling` (new in 1.35)"]),
    ("gates-known", Valid, &[]),
    ("gates-twice-with-underscores", Warning(1), &["replaces all of `featureGates`"]),
    ("head-missing", Error(1), &["did not find expected", "  roleGroups:"]),
    ("health-of-kubelet", Error(2), &["set healthzPort in spec.kubernetes.kubeletConfiguration", "set healthzBindAddress in spec.kubernetes.kubeletConfiguration"]),
    ("health-of-kubelet-twice", Error(1), &["`healthz-port=10248` of kubeletArgs contradicts `healthzPort: 10300`"]),
    ("kubelet-collections", Error(6), &["`clusterDNS` must be a list", "`tlsCipherSuites` must be a list", "`featureGates` must be a map", "`authorization` must be a map", "`reservedMemory[0].numaNode`", "`reservedMemory[0].limits.memory`"]),
    ("kubelet-durations", Error(4), &["`syncFrequency` must be a duration", "such as 60s", "`nodeStatusUpdateFrequency`", "`evictionSoftGracePeriod.memory.available`", "`authentication.webhook.cacheTTL`"]),
    ("kubelet-nested-unknown", Warning(2), &["`webhok` is not known as a setting of the kubelet in `authentication`", "did you mean `webhook`", "did you mean `verbosity`"]),
    ("kubelet-numbers", Error(4), &["`podsPerCore` must be a whole number", "without quotes", "`maxOpenFiles`", "`registryPullQPS`", "`port` must be a number that fits"]),
    ("kubelet-right", Valid, &[]),
    ("kubelet-texts", Error(4), &["`staticPodURL` must be a text", "`kubeReserved.cpu`", "write it in quotes: \"1\"", "`kubeReserved.memory`", "`evictionHard.memory.available` must be a text"]),
    ("kubelet-truth", Error(3), &["`failSwapOn` must be true or false", "without quotes", "`authentication.anonymous.enabled`", "`featureGates.NodeSwap`"]),
    ("kubelet-words", Error(2), &["`topologyManagerPolicy` must be one of none, best-effort", "`registerWithTaints[0].effect`"]),
    ("load-balancer-unknown", Error(1), &["none of its values can be used yet"]),
    ("mistake-behind-secret", Error(1), &["did you mean `user`", "*** … usr"]),
    ("name-with-dots", Valid, &[]),
    ("name-with-dots-wrong", Error(1), &["`..` cannot name a cluster"]),
    ("no-break-space", Error(1), &["a no-break space (U+00A0)"]),
    ("no-break-space-in-value", Error(1), &["a no-break space (U+00A0)"]),
    (
        "plugin-unknown",
        Error(1),
        &["one of: calico, flannel, cilium, none; for another plugin, write `none` and list it in `addons` with `phase: network`"],
    ),
    ("addon-phase-unknown", Error(1), &["`spec.addons[0].phase` cannot be `before`", "one of: cluster, network"]),
    ("plugin-cilium", Valid, &[]),
    ("plugin-cilium-twice", Error(1), &["the network plugin installs `cilium` already", "`network.cilium.values`"]),
    ("pods-twice", Error(1), &["`max-pods=200` of kubeletArgs contradicts `maxPods: 110`"]),
    ("pods-twice-equal", Valid, &[]),
    ("pods-twice-in-configuration", Error(1), &["`maxPods` of kubeletConfiguration is 90, but `maxPods` is 110"]),
    ("proxy-mode-twice", Error(1), &["`mode` of kubeProxyConfiguration is ipvs, but `proxyMode` is iptables"]),
    ("proxy-right", Valid, &[]),
    ("proxy-types", Error(6), &["`conntrack.maxPerCore`", "`conntrack.tcpEstablishedTimeout`", "`ipvs.strictARP`", "`ipvs.excludeCIDRs` must be a list", "`clientConnection.qps` must be a number", "`mode` must be one of"]),
    ("public-key", Valid, &[]),
    ("public-key-as-file", Error(1), &["this is not a public key of minisign", "begins with RW"]),
    ("public-key-cut", Error(1), &["this is not a public key of minisign"]),
    ("push-port-default-of-pulls", Error(1), &["port 5443 for pulls and for pushes", "--> push-port-default-of-pulls:11:31"]),
    ("push-port-of-other-registry", Valid, &[]),
    ("push-port-of-pulls", Error(1), &["port 443 for pulls and for pushes"]),
    ("push-port-zero", Error(1), &["0 is not a port"]),
    ("role-twice", Valid, &[]),
    ("secret-alias", Error(1), &["unknown anchor", "put secrets into quotes"]),
    ("secret-anchor", Error(1), &["`sudoPassword` is empty: the text after `&`", "quotes"]),
    ("secret-anchor-unused", Warning(1), &["`password` begins with a YAML anchor"]),
    ("secret-anchor-used", Valid, &[]),
    ("secret-at-sign", Error(1), &["put secrets into quotes"]),
    ("secret-comment", Error(1), &["`password` is empty: the text after `#` is a comment", "quotes"]),
    ("secret-comment-behind", Warning(1), &["`password` ends before `#`"]),
    ("secret-comment-of-nothing", Warning(1), &["`password` is empty"]),
    ("secret-comment-of-sudo", Error(1), &["`sudoPassword` is empty", "or remove the line"]),
    ("secret-comment-with-key", Warning(1), &["`password` is empty: the text after `#` is a comment", "or \
      remove the line"]),
    ("secret-in-quotes", Valid, &[]),
    ("secret-of-bastion", Error(1), &["`password` is empty"]),
    ("secret-of-registry", Error(2), &["the text after `!` is a YAML tag", "has no password"]),
    ("secret-short", Warning(3), &["`password` has fewer than 4 characters, so kk cannot mask it"]),
    ("secret-tag", Error(1), &["the text after `!` is a YAML tag", "quotes"]),
    ("spec-in-metadata", Error(1), &["`spec` belongs at the outermost level"]),
    ("static-pods-elsewhere", Error(1), &["/etc/kubernetes/manifests"]),
    ("static-pods-with-slash", Valid, &[]),
    ("tag-elsewhere", Error(1), &["the text after `!` is a YAML tag"]),
    ("taint-twice", Error(1), &["a node has one taint `crop:NoSchedule`"]),
    ("text-over-lines", Valid, &[]),
    ("windows-line-ends", Valid, &[]),
    ("without-kube-vip-and-cilium", Warning(2), &["the settings of kube-vip have no effect", "the values of Cilium have no effect: the network plugin is flannel"]),
    ("zero-width-space", Error(1), &["a zero-width space (U+200B)"]),
    ("zero-width-space-in-quotes", Error(1), &["is not an address", "a zero-width space (U+200B)"]),
];

#[test]
fn each_file_gets_what_the_table_says() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let files = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<String> = files.map(|name| name.into_string().unwrap()).collect();
    let table: BTreeSet<String> = CASES.iter().map(|(name, ..)| format!("{name}.yaml")).collect();
    assert_eq!(files, table);
    let mut wrong = Vec::new();
    for (name, outcome, fragments) in CASES {
        let text = std::fs::read_to_string(directory.join(format!("{name}.yaml"))).unwrap();
        let (found, shown) = match load(name, &text, &Overrides::default()) {
            Ok(loaded) => {
                let shown: String = loaded.warnings.iter().map(Diagnostic::render).collect();
                (if loaded.warnings.is_empty() { Valid } else { Warning(loaded.warnings.len()) }, shown)
            }
            Err(errors) => (Error(errors.errors.len()), errors.to_string()),
        };
        let missing: Vec<_> = fragments.iter().filter(|fragment| !shown.contains(**fragment)).collect();
        if found != *outcome || !missing.is_empty() || shown.contains(SENTINEL) {
            wrong.push(format!("{name}: {found:?} in place of {outcome:?}, without {missing:?}:\n{shown}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
