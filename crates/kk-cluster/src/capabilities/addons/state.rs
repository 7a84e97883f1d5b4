//! Queries the API for the state of addons, and reads the notes about them.

use std::collections::BTreeMap;

use kk_config::{Addon, ChartSource, Host, Spec};
use kk_engine::{ProbeSpec, Question};
use serde::Deserialize;

use crate::{
    base::{
        api_server,
        host_layout::NOTES,
        probed::Probed,
        shell::script,
        supply::{InstalledVersion, origin_sum},
    },
    model::inputs::Inputs,
};

/// The state of addons as one control plane reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// `namespace/name` of each release → its newest revision and the status of that revision.
    releases: BTreeMap<String, (u32, String)>,
    /// `namespace/name` of releases of addons whose version the file leaves open → chart and version: `app-1.2.0`.
    charts: BTreeMap<String, String>,
    /// Addons with a chart → the revision that kk has installed.
    installed: BTreeMap<String, u32>,
    /// Addons with manifests → how many objects were applied, and how many of them are still there as they were applied.
    objects: BTreeMap<String, (u32, u32)>,
    /// Addons that were installed at some time → their notes.
    noted: BTreeMap<String, String>,
}

/// A release in the output of helm.
#[derive(Deserialize)]
struct Release {
    name: String,
    namespace: String,
    chart: String,
}

/// A template for kubectl that prints a minimal manifest of each object, so that the object can be queried again. A comment in it
/// contains the UID of the object and the time when kk last applied it. Edits by other tools change neither; a restore of etcd
/// changes one of the two. Jobs that are removed by a time limit are omitted.
pub(super) const OBJECTS: &str = concat!(
    r#"{{define "object"}}{{$goes := false}}{{if eq .kind "Job"}}{{$goes = ne (printf "%v" .spec.ttlSecondsAfterFinished) "<nil>"}}{{end}}"#,
    r#"{{if not $goes}}---{{"\n"}}# {{.metadata.uid}}"#,
    r#"{{range .metadata.managedFields}}{{if eq (printf "%v %v" .manager .operation) "kk Apply"}} {{.time}}{{end}}{{end}}{{"\n"}}"#,
    r#"apiVersion: {{.apiVersion}}{{"\n"}}kind: {{.kind}}{{"\n"}}metadata:{{"\n"}}  name: {{printf "%q" .metadata.name}}{{"\n"}}"#,
    r#"{{with .metadata.namespace}}  namespace: {{printf "%q" .}}{{"\n"}}{{end}}{{end}}{{end}}"#,
    r#"{{if eq .kind "List"}}{{range .items}}{{template "object" .}}{{end}}{{else}}{{template "object" .}}{{end}}"#,
);

pub(crate) const STATE: Question<State> = Question::new("addons", "echo end", State::parse);

/// Adds the question to the probe, so that it is answered in the same round trip as all others.
pub(super) fn asks(inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
    let server = api_server::url(host);
    let with_chart = inputs.addons.iter().filter(|wanted| wanted.addon.chart.is_some());
    let names: Vec<&str> = with_chart.map(|wanted| wanted.addon.name.as_str()).collect();
    let names = names.join(",");
    let is_open = |addon: &&Addon| addon.chart.as_ref().is_some_and(|chart| chart.is_open);
    let open = inputs.addons.iter().map(|wanted| &wanted.addon).filter(is_open);
    let open = open.map(|addon| addon.name.as_str()).collect::<Vec<_>>().join("|");
    let variables = [
        ("server", server.as_str()),
        ("names", names.as_str()),
        ("open", open.as_str()),
        ("notes", NOTES),
        ("template", OBJECTS),
    ];
    probe.ask(&STATE.with_snippet(script(&variables, include_str!("state.sh"))));
}

/// The state that the control plane reports at which the API is queried. `None`: it did not report a state.
pub(super) fn of(inputs: &Inputs) -> Option<State> {
    inputs.facts(inputs.api_host)?.answer(&STATE).answered()
}

/// The states of all control planes that answer. Each has its own notes, because the control plane at which the API is queried
/// changes.
pub(super) fn of_all<'a>(inputs: &Inputs<'a>) -> Vec<(&'a Host, State)> {
    let hosts = inputs.spec.control_planes().into_iter();
    hosts.filter_map(|host| Some((host, inputs.facts(host)?.answer(&STATE).answered()?))).collect()
}

/// The installed versions of charts whose version the file leaves open, by addon. No entry: any version can be installed.
pub(crate) fn installed_versions(spec: &Spec, probed: &Probed) -> BTreeMap<String, InstalledVersion> {
    let facts = spec.control_planes().into_iter().filter_map(|host| probed.facts.get(&host.name));
    let states: Vec<State> = facts.filter_map(|facts| facts.answer(&STATE).answered()).collect();
    let version = |addon: &Addon| {
        let source = &addon.chart.as_ref().filter(|chart| chart.is_open)?.source;
        Some((addon.name.clone(), installed_version(addon, source, &states)?))
    };
    spec.addons.iter().filter_map(version).collect()
}

/// The release shows the version. A note shows it if its control plane has installed this revision, or if the release is lost.
fn installed_version(addon: &Addon, source: &ChartSource, states: &[State]) -> Option<InstalledVersion> {
    let ChartSource::Repository { name: chart, .. } = source else { return None };
    let key = format!("{}/{}", addon.namespace(), addon.name);
    let origin = origin_sum(source);
    let notes =
        states.iter().filter_map(|state| Some((state, NotedVersion::of(state.noted.get(&addon.name)?)?)));
    let (same, other): (Vec<_>, Vec<_>) = notes.partition(|(_, noted)| noted.origin == origin);
    if same.is_empty() && !other.is_empty() {
        return None;
    }
    let Some(revision) = states.iter().filter_map(|state| Some(state.releases.get(&key)?.0)).max() else {
        return same.first().map(|(_, noted)| InstalledVersion::Known(noted.version.to_owned()));
    };
    if let Some(installed) = states.iter().find_map(|state| state.charts.get(&key)) {
        let version = installed.strip_prefix(chart).and_then(|rest| rest.strip_prefix('-'));
        // The next part of the name of another chart does not begin with a digit.
        let version = version
            .filter(|version| version.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit()));
        return version.map(|version| InstalledVersion::Known(version.to_owned()));
    }
    let agrees = |state: &State| state.installed.get(&addon.name) == Some(&revision);
    let current = same.iter().find(|(state, _)| agrees(state));
    Some(
        current.map_or(InstalledVersion::Unknown, |(_, noted)| {
            InstalledVersion::Known(noted.version.to_owned())
        }),
    )
}

/// The version in a note, and the checksum of its repository and chart.
struct NotedVersion<'a> {
    version: &'a str,
    origin: &'a str,
}

impl<'a> NotedVersion<'a> {
    fn of(note: &'a str) -> Option<Self> {
        let mut words = note.split_whitespace().skip(2);
        Some(Self { version: words.next()?, origin: words.next()? })
    }
}

impl State {
    /// `None`: the answer was cut off.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut state = Self::default();
        for line in text.strip_suffix("end\n")?.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["Note", name, note] => drop(state.noted.insert(name.to_owned(), format!("{note}\n"))),
                ["Installed", name, revision] => {
                    state.installed.insert(name.to_owned(), revision.parse().ok()?);
                }
                ["Release", release, revision, status] => {
                    let found = (revision.parse().ok()?, status.to_owned());
                    let newest = state.releases.entry(release.to_owned()).or_default();
                    if found.0 >= newest.0 {
                        *newest = found;
                    }
                }
                ["Charts", releases] => {
                    let releases: Vec<Release> = serde_json::from_str(releases).unwrap_or_default();
                    let chart = |one: Release| (format!("{}/{}", one.namespace, one.name), one.chart);
                    state.charts.extend(releases.into_iter().map(chart));
                }
                ["Objects", name, wanted, there] => {
                    let counts = (wanted.trim().parse().ok()?, there.trim().parse().ok()?);
                    state.objects.insert(name.to_owned(), counts);
                }
                _ => {}
            }
        }
        Some(state)
    }

    /// Names of addons with their notes.
    pub(super) fn notes(&self) -> impl Iterator<Item = (&str, &str)> {
        self.noted.iter().map(|(name, note)| (name.as_str(), note.as_str()))
    }

    /// Whether an addon with this note is there as this control plane has installed it.
    pub(super) fn has(&self, addon: &Addon, note: &str) -> bool {
        self.noted.get(&addon.name).is_some_and(|noted| is_same(noted, note))
            && (addon.chart.is_none() || self.is_deployed(addon.namespace(), &addon.name))
            && (addon.manifests.is_empty() || self.has_objects(&addon.name))
    }

    /// Whether the newest revision of a release is deployed, and is the revision that kk has installed. After a restore of etcd,
    /// the newest revision is an older one.
    fn is_deployed(&self, namespace: &str, name: &str) -> bool {
        let release = self.releases.get(&format!("{namespace}/{name}"));
        release.is_some_and(|(revision, status)| {
            status == "deployed" && self.installed.get(name) == Some(revision)
        })
    }

    /// Whether all objects that were applied are there as they were applied.
    fn has_objects(&self, name: &str) -> bool {
        self.objects.get(name).is_some_and(|(wanted, there)| there >= wanted)
    }
}

/// Whether two notes describe the same addon. Only the name and the checksum count. The version after the checksum is part of the
/// checksum, and a note contains it only if the file set no version.
fn is_same(noted: &str, note: &str) -> bool {
    noted.split_whitespace().take(2).eq(note.split_whitespace().take(2))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing;

    #[test]
    fn the_newest_revision_decides() {
        let text = "Note\tapp\tdemo/app 1\nInstalled\tapp\t1\nInstalled\tweb\t10\nInstalled\told\t3\nRelease\tdemo/old\t2\tdeployed\n\
            Release\tdemo/new\t1\tdeployed\nRelease\tdemo/app\t2\tfailed\nRelease\tdemo/app\t1\tdeployed\n\
            Release\tdemo/web\t9\tsuperseded\nRelease\tdemo/web\t10\tdeployed\nObjects\tmaps\t2\t2\nObjects\tlost\t2\t1\nend\n";
        let state = State::parse(text).unwrap();
        assert!(!state.is_deployed("demo", "app") && state.is_deployed("demo", "web"));
        assert!(!state.is_deployed("other", "web") && !state.is_deployed("demo", "none"));
        assert!(!state.is_deployed("demo", "old"), "another revision than kk has installed");
        assert!(!state.is_deployed("demo", "new"), "kk has installed none");
        assert!(state.has_objects("maps") && !state.has_objects("lost") && !state.has_objects("none"));
        assert_eq!(state.notes().collect::<Vec<_>>(), [("app", "demo/app 1\n")]);
        assert_eq!(State::parse(text.strip_suffix("end\n").unwrap()), None);
    }

    #[test]
    fn the_release_shows_the_version_and_a_note_only_for_its_revision_and_origin() {
        use InstalledVersion::{Known, Unknown};
        let addons = testing::addons(
            "[{name: app, namespace: demo, sources: {chart: {name: app, repo: 'https://a.example'}}}]",
        );
        let source = addons[0].chart.as_ref().unwrap().source.clone();
        let note = |origin: &str, revision: u32| {
            format!("Note\tapp\tdemo/app 12 1.1.0 {origin}\nInstalled\tapp\t{revision}\n")
        };
        let own = origin_sum(&source);
        let release = "Release\tdemo/app\t3\tdeployed\n";
        let chart = |name: &str| {
            format!("{release}Charts\t[{{\"name\":\"app\",\"namespace\":\"demo\",\"chart\":\"{name}\"}}]\n")
        };
        for (first, second, expected) in [
            (String::new(), String::new(), None),
            (chart("app-1.2.0"), String::new(), Some(Known("1.2.0".into()))),
            (chart("app-1.2.0"), note(&own, 2), Some(Known("1.2.0".into()))),
            (release.to_owned(), note(&own, 3), Some(Known("1.1.0".into()))),
            (release.to_owned(), note(&own, 2), Some(Unknown)),
            (release.to_owned() + "Charts\t\n", String::new(), Some(Unknown)),
            // The release was removed by another tool.
            (String::new(), note(&own, 3), Some(Known("1.1.0".into()))),
            // Another chart or repository.
            (chart("app-of-others-1.2.0"), String::new(), None),
            (chart("app-1.2.0"), note("other", 3), None),
        ] {
            let states = [&first, &second].map(|text| State::parse(&format!("{text}end\n")).unwrap());
            assert_eq!(installed_version(&addons[0], &source, &states), expected, "{first}{second}");
        }
    }

    /// Runs the snippet with this script as `kubectl`, and returns whether it succeeded and what it printed.
    fn ask(kubectl: &str, names: &str) -> (bool, String) {
        let directory = tempfile::tempdir().unwrap();
        let notes = directory.path().join("notes");
        fs::create_dir(&notes).unwrap();
        for (file, text) in [
            ("addon-app", "demo/app 12\n"),
            ("addon-app.release", "3\n"),
            ("addon-maps", "default/maps 34\n"),
            ("addon-maps.objects", "---\n# a 1\na\n---\n# b 1\nb\n"),
            ("addon-passing.objects", ""),
            ("kubeadm.yaml", ""),
        ] {
            fs::write(notes.join(file), text).unwrap();
        }
        fs::write(directory.path().join("admin.conf"), "").unwrap();
        testing::program(directory.path(), "kubectl", kubectl);
        let releases = r#"[{"name":"app","namespace":"demo","revision":"3","chart":"app-1.2.0"}]"#;
        let helm = format!("case $* in *' list '*'--filter ^(app)$ '*) echo '{releases}' ;; esac");
        testing::program(directory.path(), "helm", &helm);
        let variables = [
            ("server", "https://192.0.2.1:6443"),
            ("names", names),
            ("open", names),
            ("notes", notes.to_str().unwrap()),
            ("template", OBJECTS),
        ];
        let text = script(&variables, include_str!("state.sh"))
            .replace("/etc/kubernetes/admin.conf", directory.path().join("admin.conf").to_str().unwrap());
        let output = testing::run_script(directory.path(), &text);
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn a_table_of_the_server_becomes_an_answer() {
        let table = "case $* in *secrets*) echo 'demo  sh.helm.release.v1.app.v3  helm.sh/release.v1  1  5m  app  deployed  3' ;; \
            *-f*) echo '# b 1'; echo '# a 1'; echo a ;; esac";
        let (answered, printed) = ask(table, "app");
        assert!(answered);
        let notes = "Note\tapp\tdemo/app12\nInstalled\tapp\t3\nNote\tmaps\tdefault/maps34\n";
        let none = "Objects\tpassing\t0\t0\nend\n";
        assert_eq!(
            printed.replace(' ', ""),
            format!(
                "{notes}Release\tdemo/app\t3\tdeployed\nCharts\t[{{\"name\":\"app\",\"namespace\":\"demo\",\"revision\":\"3\",\
                 \"chart\":\"app-1.2.0\"}}]\nObjects\tmaps\t2\t2\n{none}"
            )
        );
        for (there, count) in [("# a 1", 1), ("# a 2", 0), ("# c 1", 0)] {
            let (_, printed) = ask(&format!("case $* in *-f*) echo '{there}'; exit 1 ;; esac"), "");
            assert_eq!(printed.replace(' ', ""), format!("{notes}Objects\tmaps\t2\t{count}\n{none}"));
        }
        let (answered, printed) = ask("exit 1", "");
        assert!(!answered && !printed.contains("end"), "an API that is silent has lost nothing: {printed}");
    }
}
