//! Documents for kubeadm: `kubeadm.k8s.io/v1beta3` below Kubernetes 1.31 and `v1beta4` from there on, with the kubelet's
//! and kube-proxy's own configuration beside them.
//!
//! They are built as values and then written as YAML, so that nothing of the user's can break out of its place.

use std::collections::BTreeMap;

use kk_config::{EncryptionAlgorithm, Host, ProxyMode, Secret};
use serde_json::{Map, Value, json};

use crate::Target;

/// Where every control plane keeps its own client certificate for etcd. One path for all, because kubeadm has one
/// configuration for all; the keys behind it differ.
pub(crate) const ETCD_CA: &str = "/etc/ssl/etcd/ssl/ca.pem";
/// The client certificate for etcd.
pub(crate) const ETCD_CERT: &str = "/etc/ssl/etcd/ssl/apiserver-etcd-client.pem";
/// Its key.
pub(crate) const ETCD_KEY: &str = "/etc/ssl/etcd/ssl/apiserver-etcd-client-key.pem";

/// How nodes are let in: a bootstrap token of this run.
#[derive(Clone)]
pub(crate) struct Token {
    /// Six characters, public.
    pub id: String,
    /// Sixteen characters.
    pub secret: Secret,
}

impl Token {
    /// A new one, in Kubernetes' format: six and sixteen of `[a-z0-9]`.
    pub(crate) fn new() -> Self {
        Self { id: random_text(6), secret: Secret::new(random_text(16)) }
    }

    /// `id.secret`.
    pub(crate) fn text(&self) -> Secret {
        Secret::new(format!("{}.{}", self.id, self.secret.expose()))
    }
}

fn random_text(length: usize) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let mut bytes = vec![0_u8; length];
    let mut text = String::new();
    // Bytes from 252 up would make some letters likelier than others.
    while text.len() < length {
        getrandom::fill(&mut bytes).expect("the system has random numbers");
        let letters = bytes.iter().filter(|byte| **byte < 252);
        text.extend(letters.map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])));
    }
    text.truncate(length);
    text
}

/// The settings of the cluster without anything that changes from run to run: what is compared to see whether the
/// user changed something.
pub(crate) fn cluster_documents(target: &Target) -> String {
    documents(&[cluster_configuration(target), kube_proxy_configuration(target)])
}

/// The kubelet's settings for all nodes.
pub(crate) fn kubelet_document(target: &Target) -> String {
    documents(&[kubelet_configuration(target)])
}

/// What `kubeadm init` gets on the first control plane.
pub(crate) fn init_documents(target: &Target, host: &Host, token: &Token) -> String {
    let mut init = init_configuration(target, host);
    init["bootstrapTokens"] = json!([{
        "token": token.text().expose(),
        "description": "kk: nodes join while the cluster is created",
        "ttl": "1h0m0s",
        "usages": ["signing", "authentication"],
        "groups": ["system:bootstrappers:kubeadm:default-node-token"],
    }]);
    let [cluster, kubelet, proxy] = settings(target);
    documents(&[init, cluster, kubelet, proxy])
}

/// What single phases of `kubeadm init` get on a control plane that runs. Without its own address in it, kubeadm would
/// take the one of the default route.
pub(crate) fn phase_documents(target: &Target, host: &Host) -> String {
    let [cluster, kubelet, proxy] = settings(target);
    documents(&[init_configuration(target, host), cluster, kubelet, proxy])
}

fn settings(target: &Target) -> [Value; 3] {
    [cluster_configuration(target), kubelet_configuration(target), kube_proxy_configuration(target)]
}

fn init_configuration(target: &Target, host: &Host) -> Value {
    json!({
        "apiVersion": api_version(target),
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": host.internal_address, "bindPort": api_port()},
        "nodeRegistration": node_registration(target, host),
    })
}

/// What `kubeadm join` gets. `discovery` is the path of a kubeconfig that holds the address and the CA, so that nothing
/// has to be trusted on first sight.
pub(crate) fn join_document(target: &Target, host: &Host, token: &Token, discovery: &str) -> String {
    let mut join = json!({
        "apiVersion": api_version(target),
        "kind": "JoinConfiguration",
        "discovery": {
            "file": {"kubeConfigPath": discovery},
            "tlsBootstrapToken": token.text().expose(),
        },
        "nodeRegistration": node_registration(target, host),
    });
    if host.has_role(&kk_config::Role::ControlPlane) {
        join["controlPlane"] = json!({
            "localAPIEndpoint": {"advertiseAddress": host.internal_address, "bindPort": api_port()},
        });
    }
    documents(&[join])
}

/// A kubeconfig with the address and the CA of the cluster, and the bootstrap token as its user.
pub(crate) fn discovery_kubeconfig(endpoint: &str, ca: &str, token: &Token) -> String {
    documents(&[json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": {
            "server": format!("https://{endpoint}"),
            "certificate-authority-data": base64(ca.as_bytes()),
        }}],
        "users": [{"name": "bootstrap", "user": {"token": token.text().expose()}}],
        "contexts": [{"name": "bootstrap", "context": {"cluster": "cluster", "user": "bootstrap"}}],
        "current-context": "bootstrap",
    })])
}

/// The Secret that makes a bootstrap token valid on a cluster that exists already, until a time of RFC 3339.
pub(crate) fn token_secret(token: &Token, expires: &str) -> String {
    documents(&[json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": format!("bootstrap-token-{}", token.id), "namespace": "kube-system"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": token.id,
            "token-secret": token.secret.expose(),
            "expiration": expires,
            "usage-bootstrap-authentication": "true",
            "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
        },
    })])
}

/// Standard Base64 (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn api_port() -> u16 {
    kk_config::ControlPlaneEndpoint::API_SERVER_PORT
}

fn is_v1beta4(target: &Target) -> bool {
    target.spec.kubernetes.version.at_least(1, 31)
}

fn api_version(target: &Target) -> &'static str {
    if is_v1beta4(target) { "kubeadm.k8s.io/v1beta4" } else { "kubeadm.k8s.io/v1beta3" }
}

fn node_registration(target: &Target, host: &Host) -> Value {
    // Images are on the host before; kubeadm's own look would cost seconds. Where the user pulls none, it has to.
    let policy = if target.options.skip_pull_images { "IfNotPresent" } else { "Never" };
    let mut registration = json!({
        "name": host.name,
        "criSocket": "unix:///run/containerd/containerd.sock",
        "imagePullPolicy": policy,
    });
    // A control plane that is a worker too takes pods: an empty list keeps kubeadm's own taint away.
    if host.has_role(&kk_config::Role::ControlPlane) && host.has_role(&kk_config::Role::Worker) {
        registration["taints"] = json!([]);
    }
    registration
}

fn cluster_configuration(target: &Target) -> Value {
    let (spec, kubernetes) = (target.spec, &target.spec.kubernetes);
    let etcd: Vec<String> = spec
        .etcd_hosts()
        .iter()
        .map(|host| format!("https://{}:{}", host.internal_address, spec.etcd.port))
        .collect();
    let mut document = json!({
        "apiVersion": api_version(target),
        "kind": "ClusterConfiguration",
        "clusterName": kubernetes.cluster_name,
        "kubernetesVersion": kubernetes.version.to_string(),
        "imageRepository": target.images.repository("registry.k8s.io"),
        "certificatesDir": "/etc/kubernetes/pki",
        "controlPlaneEndpoint": target.endpoint(),
        "etcd": {"external": {"endpoints": etcd, "caFile": ETCD_CA, "certFile": ETCD_CERT, "keyFile": ETCD_KEY}},
        "networking": {
            "dnsDomain": kubernetes.dns_domain,
            "podSubnet": spec.network.pod_subnet(),
            "serviceSubnet": spec.network.service_subnet(),
        },
        "apiServer": {
            "certSANs": cert_names(target),
            "extraArgs": args(target, &with_gates(target, kubernetes.apiserver_args.clone())),
        },
        "controllerManager": {"extraArgs": args(target, &controller_manager_args(target))},
        "scheduler": {"extraArgs": args(target, &with_gates(target, kubernetes.scheduler_args.clone()))},
    });
    if is_v1beta4(target) {
        document["encryptionAlgorithm"] = json!(kubernetes.encryption_algorithm.as_str());
        for (name, period) in [
            ("certificateValidityPeriod", &kubernetes.certificate_validity_period),
            ("caCertificateValidityPeriod", &kubernetes.ca_certificate_validity_period),
        ] {
            if let Some(period) = period {
                document[name] = json!(period);
            }
        }
        // CoreDNS comes from this program's own template; `kubeadm upgrade` must not put its own in its place.
        document["dns"] = json!({"disabled": true});
        document["proxy"] = json!({"disabled": kubernetes.disable_kube_proxy});
    } else if kubernetes.encryption_algorithm == EncryptionAlgorithm::EcdsaP256 {
        document["featureGates"] = json!({"PublicKeysECDSA": true});
    }
    document
}

/// Every name under which an API server may be called, each once, in a fixed order.
fn cert_names(target: &Target) -> Vec<String> {
    let spec = target.spec;
    let mut names =
        vec![spec.control_plane_endpoint.domain.clone(), "localhost".to_owned(), "127.0.0.1".to_owned()];
    names.extend(spec.control_plane_endpoint.address.map(|address| address.to_string()));
    for host in spec.control_planes() {
        names.extend([
            host.name.clone(),
            format!("{}.{}", host.name, spec.kubernetes.cluster_name),
            host.address.clone(),
            host.internal_address.to_string(),
        ]);
        names.extend(host.internal_address_v6.map(|address| address.to_string()));
    }
    names.extend(spec.kubernetes.apiserver_cert_extra_sans.iter().cloned());
    let mut seen = std::collections::BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn controller_manager_args(target: &Target) -> BTreeMap<String, String> {
    let (network, kubernetes) = (&target.spec.network, &target.spec.kubernetes);
    let mut args = BTreeMap::new();
    if network.pods_v6.is_some() {
        args.insert("node-cidr-mask-size-ipv4".to_owned(), kubernetes.node_cidr_mask_size.to_string());
        args.insert("node-cidr-mask-size-ipv6".to_owned(), kubernetes.node_cidr_mask_size_ipv6.to_string());
    } else {
        args.insert("node-cidr-mask-size".to_owned(), kubernetes.node_cidr_mask_size.to_string());
    }
    // Its own bound of 20 requests a second makes it wait 5 s at each start and change of leader, before the first
    // node is let in. The kubelet's defaults since Kubernetes 1.27 are these.
    args.insert("kube-api-qps".to_owned(), "50".to_owned());
    args.insert("kube-api-burst".to_owned(), "100".to_owned());
    args.extend(kubernetes.controller_manager_args.clone());
    with_gates(target, args)
}

/// Adds the user's feature gates, unless the user's own flags name some.
fn with_gates(target: &Target, mut args: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let gates = &target.spec.kubernetes.feature_gates;
    if !gates.is_empty() {
        let text = gates.iter().map(|(gate, on)| format!("{gate}={on}")).collect::<Vec<_>>().join(",");
        args.entry("feature-gates".to_owned()).or_insert(text);
    }
    args
}

/// Flags as the API version takes them: a list of names and values from v1beta4 on, a map before.
fn args(target: &Target, args: &BTreeMap<String, String>) -> Value {
    if is_v1beta4(target) {
        args.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
    } else {
        json!(args)
    }
}

fn kubelet_configuration(target: &Target) -> Value {
    let kubernetes = &target.spec.kubernetes;
    let mut document = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "clusterDNS": [target.spec.network.dns_service_address()],
        "clusterDomain": kubernetes.dns_domain,
        "maxPods": kubernetes.max_pods,
        "podPidsLimit": kubernetes.pod_pids_limit,
        "rotateCertificates": true,
        "cgroupDriver": if target.systemd_cgroups() { "systemd" } else { "cgroupfs" },
        "kubeReserved": {"cpu": "200m", "memory": "250Mi"},
        "systemReserved": {"cpu": "200m", "memory": "250Mi"},
        "evictionHard": {"memory.available": "5%", "pid.available": "10%"},
        "evictionSoft": {"memory.available": "10%"},
        "evictionSoftGracePeriod": {"memory.available": "2m"},
        "evictionMaxPodGracePeriod": 120,
        "evictionPressureTransitionPeriod": "30s",
        "containerLogMaxSize": "5Mi",
        "containerLogMaxFiles": 3,
    });
    if !kubernetes.feature_gates.is_empty() {
        document["featureGates"] = json!(kubernetes.feature_gates);
    }
    // From 1.35 on the kubelet refuses to start on cgroup v1 unless told otherwise; never said on cgroup v2.
    if kubernetes.version.at_least(1, 35) && target.any_node(|facts| !facts.cgroup_v2) {
        document["failCgroupV1"] = json!(false);
    }
    if target.any_node(|facts| !facts.swaps.is_empty()) && target.spec.system.skip_configure_os {
        document["failSwapOn"] = json!(false);
    }
    replace_top_level(&mut document, &kubernetes.kubelet_configuration);
    document
}

fn kube_proxy_configuration(target: &Target) -> Value {
    let (network, kubernetes) = (&target.spec.network, &target.spec.kubernetes);
    let mut document = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clusterCIDR": network.pod_subnet(),
        "mode": kubernetes.proxy_mode.as_str(),
        // In ipvs mode kube-proxy reads this section, too; in nftables mode its own (Kubernetes,
        // pkg/proxy/apis/config/v1alpha1/conversion.go).
        "iptables": {"masqueradeAll": kubernetes.masquerade_all, "masqueradeBit": 14, "minSyncPeriod": "0s", "syncPeriod": "30s"},
    });
    if kubernetes.proxy_mode == ProxyMode::Nftables {
        document["nftables"] = json!({"masqueradeAll": kubernetes.masquerade_all});
    }
    if !kubernetes.feature_gates.is_empty() {
        document["featureGates"] = json!(kubernetes.feature_gates);
    }
    replace_top_level(&mut document, &kubernetes.kube_proxy_configuration);
    document
}

/// The user's raw keys replace the generated ones whole, as KubeKey does it.
fn replace_top_level(document: &mut Value, own: &Map<String, Value>) {
    for (key, value) in own {
        document[key] = value.clone();
    }
}

/// Several documents in one YAML stream.
fn documents(values: &[Value]) -> String {
    values.iter().fold(String::new(), |text, value| text + "---\n" + &crate::yaml::to_string(value))
}
