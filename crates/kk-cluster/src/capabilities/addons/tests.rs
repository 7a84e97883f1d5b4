//! Tests what a create does about addons, depending on the results of the probe.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use kk_artifact::{
    Component,
    bundle::{Bundle, BundleIndex, ChartPart, FilePart, ManifestPart},
};
use kk_config::{NetworkPlugin, Spec, v1alpha2::FlannelBackend};
use kk_engine::{FileFact, Finding, Plan, ProbeSpec, Severity, SlotKey};
use kk_util::sha256;

use super::{
    Addons,
    of_network::MARK,
    state::{OBJECTS, STATE},
};
use crate::{
    base::{
        cluster_state::INITIALISED,
        host_layout::{NETWORK_ADDONS, NOTES},
        probed::Probed,
        shell::script,
        slots,
    },
    commands::{create_cluster, precheck::precheck, session::Session},
    model::{capability::Capability as _, options::Options},
    testing,
};

/// A cluster of one host with these addons, where HERE is a directory with a chart and a manifest.
fn spec(here: &Path, addons: &str) -> Spec {
    let chart = here.join("chart");
    fs::create_dir_all(chart.join("templates")).unwrap();
    fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: app\nversion: 1.0.0\n").unwrap();
    fs::write(here.join("all.yaml"), "kind: ConfigMap\n").unwrap();
    fs::write(here.join("values.yaml"), "a: 1\n").unwrap();
    let mut spec = testing::sample("all-in-one.yaml");
    spec.addons = testing::addons(&addons.replace("HERE", here.to_str().unwrap()));
    spec
}

const CHART: &str = "[{name: app, namespace: demo, sources: {chart: {path: HERE/chart, valuesFile: HERE/values.yaml, values: [b=2]}}}]";
const MANIFESTS: &str = "[{name: maps, sources: {yaml: {path: [HERE/all.yaml]}}}]";

/// The changes that the plan contains for addons.
async fn changes(session: &Session, probed: &Probed) -> Vec<String> {
    let inputs = session.create_inputs(probed).await.unwrap();
    let plan = Plan::new(create_cluster::pipeline(&inputs).unwrap(), &probed.facts).unwrap();
    let of_addons = ["addons", "network-addons"];
    let of_module = plan.changes().into_iter().filter(|task| of_addons.contains(&task.module.as_str()));
    of_module.flat_map(|task| task.changes).collect()
}

/// The control plane reports this state, and has the notes of these addons. If its API does not respond, the state is empty.
async fn installed(spec: &Spec, workdir: &Path, state: &str) -> Probed {
    let mut probed = testing::fresh(spec);
    let session = testing::session(spec.clone(), workdir);
    let notes: Vec<(String, String)> = {
        let inputs = session.create_inputs(&probed).await.unwrap();
        inputs.addons.iter().map(|addon| (addon.addon.name.clone(), addon.note())).collect()
    };
    let facts = probed.facts.values_mut().next().unwrap();
    facts.reply(&INITIALISED, "yes");
    let lines: Vec<String> = notes.iter().map(|(name, note)| format!("Note\t{name}\t{note}")).collect();
    facts.reply(&STATE, &if state.is_empty() { String::new() } else { lines.concat() + state });
    for (name, note) in notes {
        facts.files.insert(format!("{NOTES}/addon-{name}"), written(&note));
    }
    if super::has_network_addons(spec) {
        facts.files.insert(NETWORK_ADDONS.to_owned(), written(MARK));
    }
    probed
}

/// A note with this text.
fn written(text: &str) -> FileFact {
    let [kind, mode, owner] = ["file", "600", "root:root"].map(str::to_owned);
    FileFact { sha256: sha256(text.as_bytes()), kind, mode, owner, ..FileFact::default() }
}

const DEPLOYED: &str = "Installed\tapp\t1\nRelease\tdemo/app\t1\tdeployed\nend\n";

#[tokio::test]
async fn addons_that_are_skipped_are_neither_installed_nor_reported_as_gone() {
    let directory = tempfile::tempdir().unwrap();
    let wanted = spec(directory.path(), CHART);
    let options = Options { skip_addons: true, ..Options::default() };
    let session = testing::session_with(wanted.clone(), directory.path(), options);
    for probed in [testing::fresh(&wanted), installed(&wanted, directory.path(), DEPLOYED).await] {
        assert_eq!(changes(&session, &probed).await, [""; 0]);
        let inputs = session.create_inputs(&probed).await.unwrap();
        let findings = precheck(&create_cluster::capabilities(&wanted), &inputs);
        assert!(findings.iter().all(|finding| !finding.message.contains("addon")), "{findings:?}");
    }
    // Without an addon that connects pods, nodes do not become ready.
    let wanted = spec(directory.path(), &of_network(MANIFESTS));
    let options = Options { skip_addons: true, ..Options::default() };
    let session = testing::session_with(wanted.clone(), directory.path(), options);
    assert_ne!(changes(&session, &testing::fresh(&wanted)).await, [""; 0]);
}

#[tokio::test]
async fn a_release_is_installed_once_and_again_when_it_is_lost() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let wanted = spec(here, CHART);
    let install = format!("install {} into demo", here.join("chart").display());
    let note = format!("write {NOTES}/addon-app");
    let session = testing::session(wanted.clone(), here);
    let fresh = changes(&session, &testing::fresh(&wanted)).await;
    assert_eq!(fresh, [install.clone(), note]);
    for (state, lost) in [
        (DEPLOYED, false),
        ("Installed\tapp\t2\nRelease\tdemo/app\t2\tdeployed\nRelease\tdemo/app\t1\tsuperseded\nend\n", false),
        ("Installed\tapp\t1\nRelease\tdemo/app\t2\tfailed\nRelease\tdemo/app\t1\tdeployed\nend\n", true),
        ("Installed\tapp\t1\nRelease\tdemo/app\t1\tpending-install\nend\n", true),
        ("Installed\tapp\t1\nRelease\tother/app\t1\tdeployed\nend\n", true),
        // A restore of etcd or a rollback by another tool has reset it.
        ("Installed\tapp\t2\nRelease\tdemo/app\t1\tdeployed\nend\n", true),
        ("Installed\tapp\t2\nRelease\tdemo/app\t3\tdeployed\nend\n", true),
        ("Release\tdemo/app\t1\tdeployed\nend\n", true),
        ("end\n", true),
        // The API has not answered.
        ("", false),
    ] {
        let probed = installed(&wanted, here, state).await;
        let expected = if lost { vec![install.clone()] } else { Vec::new() };
        assert_eq!(changes(&session, &probed).await, expected, "{state}");
    }
}

/// The file sets no version, and the note contains one. The repository does not answer.
#[tokio::test]
async fn a_chart_without_a_version_keeps_the_installed_one() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let chart = |version: &str| {
        let repo = "'http://127.0.0.1:9/charts'";
        format!("[{{name: app, namespace: demo, sources: {{chart: {{name: app, repo: {repo}{version}}}}}}}]")
    };
    let (open, exact) = (spec(here, &chart("")), spec(here, &chart(", version: 1.2.0")));
    let note = {
        let (session, fresh) = (testing::session(open.clone(), here), testing::fresh(&open));
        let mut inputs = session.create_inputs(&fresh).await.unwrap();
        let addon = &mut inputs.addons[0];
        addon.choose_version(&addon.open_chart().unwrap().clone(), "1.2.0");
        addon.note().trim_end().to_owned()
    };
    let probed = |state: &str| {
        let mut probed = testing::fresh(&open);
        let facts = probed.facts.values_mut().next().unwrap();
        facts.reply(&INITIALISED, "yes");
        facts.reply(&STATE, state);
        facts.files.insert(format!("{NOTES}/addon-app"), FileFact::default());
        probed
    };
    let there = probed(&format!("Note\tapp\t{note}\n{DEPLOYED}"));
    let session = testing::session(open.clone(), here);
    assert_eq!(changes(&session, &there).await, [""; 0]);
    assert_eq!(
        changes(&session, &probed("")).await,
        [""; 0],
        "an API that does not respond has lost nothing"
    );
    let found = session.plan_create(&there).await.unwrap().findings;
    let of_addon: Vec<&Finding> = found.iter().filter(|one| one.message.contains("addon")).collect();
    assert!(of_addon.iter().all(|one| one.severity == Severity::Warning), "{of_addon:?}");
    assert_eq!(of_addon.len(), 1, "{of_addon:?}");
    assert!(
        of_addon[0].message.contains("kk uses app 1.2.0 of http://127.0.0.1:9/charts")
            && of_addon[0].hint.contains("`version: 1.2.0`"),
        "{of_addon:?}"
    );
    // The user follows the warning.
    let session = testing::session(exact, here);
    assert_eq!(changes(&session, &there).await, [""; 0]);
    // The control plane with the note is lost.
    let unknown = probed("Release\tdemo/app\t1\tdeployed\nend\n");
    let found = testing::session(open.clone(), here).plan_create(&unknown).await.unwrap().findings;
    let error = found.iter().find(|one| one.message.contains("installed version is unknown")).unwrap();
    assert!(error.severity == Severity::Error && error.hint.contains("write `version`"), "{error:?}");
    // Without a note and a release, the repository is needed.
    let found = testing::session(open.clone(), here).plan_create(&probed("end\n")).await.unwrap().findings;
    let error = found.iter().find(|one| one.message.contains("chart app of")).expect("it is not reachable");
    assert_eq!(error.severity, Severity::Error);
}

#[tokio::test]
async fn what_one_control_plane_has_installed_is_there_when_another_one_answers() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let mut wanted = testing::sample("ha.yaml");
    wanted.addons = spec(here, CHART).addons;
    let session = testing::session(wanted.clone(), here);
    let planes: Vec<String> = wanted.control_planes().iter().map(|host| host.name.clone()).collect();
    assert!(planes.len() > 1);
    for (revision, answered, needed) in [("2", true, false), ("1", true, true), ("2", false, true)] {
        let mut probed = testing::fresh(&wanted);
        let note = session.create_inputs(&probed).await.unwrap().addons[0].note();
        for host in &planes {
            let is_last = host == planes.last().unwrap();
            let noted = format!("Note\tapp\t{note}Installed\tapp\t{revision}\n");
            let state = "Release\tdemo/app\t2\tdeployed\nend\n";
            let facts = probed.facts.get_mut(host).unwrap();
            facts.reply(&INITIALISED, "yes");
            facts.reply(&STATE, &if is_last { noted + state } else { state.to_owned() });
            if is_last && !answered {
                facts.reply(&STATE, "");
            }
        }
        assert_ne!(session.create_inputs(&probed).await.unwrap().api_host.name, *planes.last().unwrap());
        assert_eq!(!changes(&session, &probed).await.is_empty(), needed, "{revision} {answered}");
    }
}

#[tokio::test]
async fn the_end_of_another_command_leaves_out_what_cannot_be_had() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let far = "{name: far, sources: {yaml: {path: ['http://127.0.0.1:9/a.yaml?token=SENTINEL']}}}";
    let unread = "{name: unread, sources: {yaml: {path: [HERE/none.yaml]}}}";
    let addons = CHART.replace("}}}]", &format!("}}}}}}, {far}, {unread}]"));
    let wanted = spec(here, &addons);
    let (session, fresh) = (testing::session(wanted.clone(), here), testing::fresh(&wanted));
    let is_error = |finding: &&Finding| finding.severity == Severity::Error;
    let messages = |found: &[Finding]| {
        let errors: Vec<String> = found.iter().filter(is_error).map(|one| one.message.clone()).collect();
        errors.join("\n")
    };
    let create = session.plan_create(&fresh).await.unwrap();
    let said = messages(&create.findings);
    assert!(said.contains("/a.yaml") && said.contains("/none.yaml"), "{said}");

    let rest = session.plan_rest(&fresh).await.unwrap();
    let tasks: Vec<String> = rest.plan.changes().into_iter().map(|task| task.task).collect();
    let of_addons: Vec<&String> = tasks.iter().filter(|task| task.starts_with("install_addon_")).collect();
    assert_eq!(of_addons, ["install_addon_app"]);
    let said = messages(&rest.findings);
    assert!(!said.contains("/a.yaml") && !said.contains("/none.yaml"), "{said}");
    assert_eq!(rest.left_out, session.addons_left_out(&fresh).await.unwrap());
    assert_eq!(messages(&rest.left_out), "", "they end no command");
    let said: Vec<&str> = rest.left_out.iter().map(|one| one.message.as_str()).collect();
    assert!(said[0].starts_with("the addon far is not changed: ") && said[0].contains("/a.yaml"), "{said:?}");
    assert!(said[1].starts_with("the addon unread is not changed: "), "{said:?}");
    assert!(said.len() == 2 && !said.concat().contains("SENTINEL"), "{said:?}");
}

#[tokio::test]
async fn what_the_file_changes_is_installed_again() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let before = spec(here, CHART);
    let probed = installed(&before, here, DEPLOYED).await;
    for (from, to, changed) in [
        ("values: [b=2]", "values: ['b=2']", false),
        ("valuesFile", "wait: true, valuesFile", false),
        ("values: [b=2]", "values: [b=3]", true),
        (", values: [b=2]", "", true),
        ("valuesFile: HERE/values.yaml, ", "", true),
        ("namespace: demo", "namespace: default", true),
    ] {
        let session = testing::session(spec(here, &CHART.replace(from, to)), here);
        assert_eq!(!changes(&session, &probed).await.is_empty(), changed, "{to}");
    }
    let session = testing::session(before, here);
    for (file, content) in [("values.yaml", "a: 2\n"), ("chart/templates/map.yaml", "kind: ConfigMap\n")] {
        let place = here.join(file);
        let was = fs::read(&place).ok();
        fs::write(&place, content).unwrap();
        assert!(!changes(&session, &probed).await.is_empty(), "{file}");
        was.map_or_else(|| fs::remove_file(&place), |was| fs::write(&place, was)).unwrap();
        assert!(changes(&session, &probed).await.is_empty(), "{file} as it was");
    }
}

#[tokio::test]
async fn manifests_are_applied_once_and_again_when_objects_are_lost() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    for addons in [MANIFESTS.to_owned(), of_network(MANIFESTS)] {
        let wanted = spec(here, &addons);
        let session = testing::session(wanted.clone(), here);
        for (state, lost) in
            [("Objects\tmaps\t2\t2\nend\n", false), ("Objects\tmaps\t2\t1\nend\n", true), ("end\n", true)]
        {
            let probed = installed(&wanted, here, state).await;
            assert_eq!(!changes(&session, &probed).await.is_empty(), lost, "{addons} {state}");
        }
    }
}

fn of_network(addons: &str) -> String {
    addons.replace("[{", "[{phase: network, ")
}

/// The modules and tasks of a create with these addons, in order.
async fn tasks(here: &Path, plugin: NetworkPlugin, addons: &str) -> Vec<(String, Vec<SlotKey>)> {
    let mut wanted = spec(here, addons);
    wanted.network.plugin = plugin;
    let (session, fresh) = (testing::session(wanted.clone(), here), testing::fresh(&wanted));
    let inputs = session.create_inputs(&fresh).await.unwrap();
    let pipeline = create_cluster::pipeline(&inputs).unwrap();
    Plan::new(create_cluster::pipeline(&inputs).unwrap(), &fresh.facts).unwrap();
    let mut all = Vec::new();
    for module in pipeline.modules {
        for task in module.tasks {
            let works = task.hosts.into_values();
            let needs = works.flat_map(|work| [work.needs, work.after].concat()).collect();
            all.push((format!("{}/{}", module.name, task.name), needs));
        }
    }
    all
}

#[tokio::test]
async fn addons_of_the_network_are_installed_in_order_before_nodes_are_ready() {
    let directory = tempfile::tempdir().unwrap();
    let two = "[{name: a, phase: network, sources: {yaml: {path: [HERE/all.yaml]}}}, \
        {name: late, sources: {yaml: {path: [HERE/all.yaml]}}}, {name: b, phase: network, sources: {yaml: {path: [HERE/all.yaml]}}}]";
    for plugin in [NetworkPlugin::None, NetworkPlugin::Flannel(FlannelBackend::Vxlan)] {
        let tasks = tasks(directory.path(), plugin, two).await;
        let needs = |name: &str| {
            let found = tasks.iter().find(|(task, _)| task == name);
            found.unwrap_or_else(|| panic!("no {name}: {tasks:?}")).1.clone()
        };
        let first = needs("network-addons/install_addon_a");
        assert!(
            first.contains(&slots::initialised_slot()) && !first.contains(&slots::manifests_applied_slot())
        );
        assert!(needs("network-addons/install_addon_b").contains(&slots::network_addon_slot("a")));
        let wait = needs("verify/wait_until_ready");
        assert!(["a", "b"].iter().all(|name| wait.contains(&slots::network_addon_slot(name))), "{wait:?}");
        assert!(needs("addons/install_addon_late").contains(&slots::manifests_applied_slot()));
    }
}

#[tokio::test]
async fn only_an_addon_of_the_network_makes_nodes_ready_without_a_plugin() {
    let directory = tempfile::tempdir().unwrap();
    for (addons, ready) in [(MANIFESTS.to_owned(), false), (of_network(MANIFESTS), true)] {
        let tasks = tasks(directory.path(), NetworkPlugin::None, &addons).await;
        assert_eq!(tasks.iter().any(|(task, _)| task == "verify/wait_until_ready"), ready, "{addons}");
    }
}

#[tokio::test]
async fn a_delete_removes_what_addons_of_the_network_may_have_left() {
    let directory = tempfile::tempdir().unwrap();
    let none = NetworkPlugin::None;
    let flannel = NetworkPlugin::Flannel(FlannelBackend::Vxlan);
    let mark = format!("made\t{NETWORK_ADDONS}");
    for (plugin, addons, record, removes) in [
        (flannel.clone(), MANIFESTS.to_owned(), "dir\t/etc/kubernetes", false),
        (flannel.clone(), of_network(MANIFESTS), "dir\t/etc/kubernetes", true),
        (flannel.clone(), "[]".to_owned(), mark.as_str(), true),
        (none, "[]".to_owned(), "dir\t/etc/kubernetes", true),
    ] {
        let mut wanted = spec(directory.path(), &addons);
        wanted.network.plugin = plugin;
        let mut probed = testing::fresh(&wanted);
        probed.facts.values_mut().for_each(|facts| facts.owned = vec![record].into());
        let delete = testing::session(wanted, directory.path()).plan_delete(&probed).unwrap();
        let tasks = delete.plan.changes();
        assert_eq!(
            tasks.iter().any(|task| task.task == "remove_other_plugins"),
            removes,
            "{addons} {record}"
        );
    }
}

#[tokio::test]
async fn without_addons_nothing_is_asked_and_no_helm_is_needed() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    for (addons, helm, asked) in [("[]", false, false), (MANIFESTS, false, true), (CHART, true, true)] {
        let wanted = spec(here, addons);
        let (session, fresh) = (testing::session(wanted.clone(), here), testing::fresh(&wanted));
        let inputs = session.create_inputs(&fresh).await.unwrap();
        let has_helm = inputs.wanted_programs().iter().any(|(program, _)| *program == Component::Helm);
        assert_eq!(has_helm, helm, "{addons}");
        let mut probe = ProbeSpec::default();
        for capability in create_cluster::capabilities(&wanted) {
            capability.asks(&inputs, inputs.api_host, &mut probe);
        }
        assert_eq!(probe.questions.contains_key(STATE.name()), asked, "{addons}");
        let modules = create_cluster::pipeline(&inputs).unwrap().modules;
        assert_eq!(modules.iter().any(|module| module.name == Addons.name()), asked, "{addons}");
    }
}

#[tokio::test]
async fn only_a_create_installs_them() {
    let directory = tempfile::tempdir().unwrap();
    let wanted = spec(directory.path(), CHART);
    let (session, fresh) = (testing::session(wanted.clone(), directory.path()), testing::fresh(&wanted));
    let inputs = session.upgrade_inputs(&fresh, [].into()).await.unwrap();
    assert!(Addons.install(&inputs).unwrap().is_empty());
}

/// The messages of findings about addons in a create.
async fn findings(wanted: &Spec, workdir: &Path, bundle: Option<BundleIndex>, state: &str) -> Vec<String> {
    let bundle = bundle.map(|index| Arc::new(Bundle::with_index(Path::new("x.tar.zst"), index)));
    let session = testing::session_with(wanted.clone(), workdir, Options { bundle, ..Options::default() });
    let mut probed = testing::fresh(wanted);
    probed.facts.values_mut().for_each(|facts| facts.reply(&STATE, state));
    let inputs = session.create_inputs(&probed).await.unwrap();
    let found = precheck(&create_cluster::capabilities(wanted), &inputs);
    let words = ["chart", "manifest", "addon"];
    let of_addons = found.into_iter().filter(|one| words.iter().any(|word| one.message.contains(word)));
    of_addons.map(|one| one.message).collect()
}

fn index(charts: Vec<ChartPart>, manifests: Vec<ManifestPart>) -> BundleIndex {
    let paths = charts.iter().map(|part| &part.path).chain(manifests.iter().map(|part| &part.path));
    let files = paths.map(|path| FilePart { path: path.clone(), size: 1, sha256: "0".repeat(64) }).collect();
    let (programs, images, packages) = (Vec::new(), Vec::new(), Vec::new());
    BundleIndex { format: 3, name: String::new(), programs, images, packages, charts, manifests, files }
}

#[tokio::test]
async fn a_bundle_that_lacks_parts_is_refused_by_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let wanted = spec(
        directory.path(),
        "[{name: a, sources: {chart: {name: app, repo: 'https://charts.example', version: 1.2.3}}}, \
         {name: b, sources: {chart: {name: 'oci://hub.example.com/web', version: 1.0.0}}}, \
         {name: c, sources: {chart: {path: /nowhere, name: own}}}, \
         {name: d, sources: {yaml: {path: ['https://files.example/a.yaml', /nowhere/b.yaml, HERE/all.yaml]}}}]",
    );
    let missing = findings(&wanted, directory.path(), Some(index(Vec::new(), Vec::new())), "end\n").await;
    assert_eq!(
        missing,
        [
            "chart app 1.2.3 of https://charts.example is not in the bundle",
            "chart oci://hub.example.com/web 1.0.0 is not in the bundle",
            "chart /nowhere/own is not in the bundle",
            "manifest https://files.example/a.yaml is not in the bundle",
            "manifest /nowhere/b.yaml is not in the bundle",
        ]
    );
    let chart = |name: &str, version: &str, source: &str| ChartPart {
        name: name.to_owned(),
        version: version.to_owned(),
        source: source.to_owned(),
        path: format!("charts/{name}-{version}.tgz"),
    };
    let manifest = |name: &str, source: &str| ManifestPart {
        name: name.to_owned(),
        source: source.to_owned(),
        path: format!("manifests/{name}"),
    };
    let charts = vec![
        chart("app", "v1.2.3", "https://charts.example"),
        chart("web", "1.0.0", "oci://hub.example.com/web"),
        chart("own", "0.1.0", "/nowhere/own"),
    ];
    let manifests =
        vec![manifest("a.yaml", "https://files.example/a.yaml"), manifest("b.yaml", "/nowhere/b.yaml")];
    assert!(findings(&wanted, directory.path(), Some(index(charts, manifests)), "end\n").await.is_empty());
}

#[tokio::test]
async fn what_is_wrong_on_the_control_machine_and_what_stays_is_told_before_the_first_change() {
    let directory = tempfile::tempdir().unwrap();
    let wanted = spec(
        directory.path(),
        "[{name: app, sources: {chart: {path: HERE/none, valuesFile: HERE/none.yaml}}}, {name: b, sources: {yaml: {path: [HERE/none.yaml]}}}]",
    );
    let found =
        findings(&wanted, directory.path(), None, "Note\tapp\tother/app 1\nNote\tgone\tx/gone 1\nend\n")
            .await
            .join("\n");
    for words in [
        "the values of the addon app cannot be read",
        "/none: there is no such file or directory",
        "/none.yaml: there is no such file or directory",
        "the addon gone is no longer in the file; kk does not remove it",
        "the previous installation of the addon app stays in the namespace other, in addition to the current one in default",
    ] {
        assert!(found.contains(words), "{words}: {found}");
    }
}

/// A directory with commands that record their arguments.
fn host() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let notes = directory.path().join("notes");
    fs::create_dir(&notes).unwrap();
    testing::program(
        directory.path(),
        "helm",
        "echo helm \"$@\" >>calls\n[ ! -e fails ] || { echo no >&2; exit $(cat fails); }",
    );
    testing::program(
        directory.path(),
        "kubectl",
        "echo kubectl \"$@\" >>calls\ncase $* in *go-template*) echo objects ;; *'-L version'*) printf 'a 1 deployed 9\\na 1 deployed 10\\n' ;; esac",
    );
    fs::write(directory.path().join("admin.conf"), "SENTINEL").unwrap();
    (directory, notes)
}

/// Runs the script, and returns whether it succeeded and the recorded calls.
fn run(here: &Path, notes: &Path, chart: &str, manifests: &str) -> (bool, String) {
    let _ = fs::remove_file(here.join("calls"));
    let variables = [
        ("name", "app"),
        ("namespace", "demo"),
        ("chart", chart),
        ("wait", "yes"),
        ("manifests", manifests),
        ("complete", "yes"),
        ("notes", notes.to_str().unwrap()),
        ("template", OBJECTS),
    ];
    let lib =
        "kk_fail() { echo \"$*\" >&2; return 1; }\nkk_do() { \"$@\"; }\nkk_put() { cp \"$1\" \"$2\"; }\n";
    let text =
        format!("export KUBECONFIG=admin.conf\n{lib}{}", script(&variables, include_str!("install.sh")));
    let path = format!("{}:/usr/bin:/bin", here.display());
    let done = Command::new("sh").args(["-euc", &text]).current_dir(here).env("PATH", path).output().unwrap();
    (done.status.success(), fs::read_to_string(here.join("calls")).unwrap_or_default())
}

#[test]
fn helm_gets_values_as_files_and_what_a_killed_run_has_left_is_removed() {
    let (directory, notes) = host();
    let here = directory.path();
    let begun = notes.join("addon-app.begun");
    let install = "helm upgrade --install app chart.tgz --namespace demo --create-namespace --reset-values --timeout 5m";
    let revision =
        "kubectl -n demo get secrets -l owner=helm,name=app,status=deployed -L version --no-headers\n";
    let (done, calls) = run(here, &notes, "chart.tgz", "");
    assert_eq!((done, calls), (true, format!("{install} --wait\n{revision}")));
    assert_eq!(fs::read_to_string(notes.join("addon-app.release")).unwrap(), "10\n");
    assert!(!begun.exists());
    for file in ["values.yaml", "single.json"] {
        fs::write(here.join(file), "SENTINEL").unwrap();
    }
    let with_values = format!("{install} --values values.yaml --values single.json --wait\n");
    // After a failure, the release may be changed by another tool.
    for (code, stays) in [("1", false), ("137", true)] {
        fs::write(here.join("fails"), code).unwrap();
        let (done, calls) = run(here, &notes, "chart.tgz", "");
        assert_eq!((done, calls), (false, with_values.clone()), "no value in arguments");
        assert_eq!(begun.exists(), stays, "{code}");
    }
    fs::remove_file(here.join("fails")).unwrap();
    let (done, calls) = run(here, &notes, "chart.tgz", "");
    let pending = "status in (pending-install,pending-upgrade,pending-rollback)";
    let removed = format!("kubectl -n demo delete secrets -l owner=helm,name=app,{pending}\n");
    assert_eq!((done, calls), (true, removed + &with_values + revision));
    assert!(!begun.exists());
}

#[test]
fn manifests_are_applied_in_their_order_and_their_objects_are_noted() {
    let (directory, notes) = host();
    let here = directory.path();
    let (done, calls) = run(here, &notes, "", "0.yaml 1.yaml");
    assert!(done, "{calls}");
    let apply = "kubectl apply --server-side --force-conflicts --validate=false --field-manager=kk -f";
    let at = |text: &str| calls.find(text).unwrap_or_else(|| panic!("{text}: {calls}"));
    assert!(at("config set-context --current --namespace=demo") < at(&format!("{apply} 0.yaml")));
    assert!(at(&format!("{apply} 0.yaml")) < at(&format!("{apply} 1.yaml")));
    assert!(
        at(&format!("{apply} 1.yaml"))
            < at("kubectl get --ignore-not-found -f 0.yaml -f 1.yaml -o go-template=")
    );
    assert!(!calls.contains("SENTINEL"), "{calls}");
    assert_eq!(fs::read_to_string(notes.join("addon-app.objects")).unwrap(), "objects\n");
    // The addon has no manifests any more.
    assert!(run(here, &notes, "chart.tgz", "").0);
    assert!(!notes.join("addon-app.objects").exists());
    assert!(notes.join("addon-app.release").exists());
    // Nor a chart.
    assert!(run(here, &notes, "", "0.yaml").0);
    assert!(!notes.join("addon-app.release").exists());
}
