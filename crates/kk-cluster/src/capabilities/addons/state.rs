//! What the API says of addons, and the notes about them.

use std::collections::BTreeMap;

use kk_config::{ControlPlaneEndpoint, Host};
use kk_engine::{ProbeSpec, Question};

use crate::{host_layout::NOTES, inputs::Inputs, shell::script};

/// As one control plane shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// `namespace/name` of each release → its newest revision, and the status of that.
    releases: BTreeMap<String, (u32, String)>,
    /// Of each addon with manifests, how many objects were applied and how many of them are there.
    objects: BTreeMap<String, (u32, u32)>,
    /// Addons that were installed once.
    pub(super) noted: Vec<String>,
}

pub(super) const STATE: Question<State> = Question::new("addons", "echo end", State::parse);

/// The answer comes with all others, in one round trip.
pub(super) fn asks(inputs: &Inputs, host: &Host, probe: &mut ProbeSpec) {
    let server = format!("https://{}:{}", host.internal_address, ControlPlaneEndpoint::API_SERVER_PORT);
    let with_chart = inputs.spec.addons.iter().filter(|addon| addon.chart.is_some());
    let names: Vec<&str> = with_chart.map(|addon| addon.name.as_str()).collect();
    let names = names.join(",");
    let variables = [("server", server.as_str()), ("names", names.as_str()), ("notes", NOTES)];
    probe.ask(&STATE.with_snippet(script(&variables, include_str!("state.sh"))));
}

/// What the control plane says at which the API is asked. `None`: it did not say.
pub(super) fn of(inputs: &Inputs) -> Option<State> {
    inputs.facts(inputs.api_host)?.answer(&STATE).answered()
}

impl State {
    /// `None`: the answer was cut off.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut state = Self::default();
        for line in text.strip_suffix("end\n")?.lines() {
            match line.split('\t').collect::<Vec<_>>()[..] {
                ["Note", name] => state.noted.push(name.to_owned()),
                ["Release", release, revision, status] => {
                    let found = (revision.parse().ok()?, status.to_owned());
                    let newest = state.releases.entry(release.to_owned()).or_default();
                    if found.0 >= newest.0 {
                        *newest = found;
                    }
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

    /// Whether the newest revision of a release is deployed.
    pub(super) fn is_deployed(&self, namespace: &str, name: &str) -> bool {
        let release = self.releases.get(&format!("{namespace}/{name}"));
        release.is_some_and(|(_, status)| status == "deployed")
    }

    /// Whether all objects that were applied are there.
    pub(super) fn has_objects(&self, name: &str) -> bool {
        self.objects.get(name).is_some_and(|(wanted, there)| there >= wanted)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing;

    #[test]
    fn the_newest_revision_decides() {
        let text = "Note\tapp\nRelease\tdemo/app\t2\tfailed\nRelease\tdemo/app\t1\tdeployed\n\
            Release\tdemo/web\t9\tsuperseded\nRelease\tdemo/web\t10\tdeployed\nObjects\tmaps\t2\t2\nObjects\tlost\t2\t1\nend\n";
        let state = State::parse(text).unwrap();
        assert!(!state.is_deployed("demo", "app") && state.is_deployed("demo", "web"));
        assert!(!state.is_deployed("other", "web") && !state.is_deployed("demo", "none"));
        assert!(state.has_objects("maps") && !state.has_objects("lost") && !state.has_objects("none"));
        assert_eq!(state.noted, ["app"]);
        assert_eq!(State::parse(text.strip_suffix("end\n").unwrap()), None);
    }

    /// What the snippet prints with this program as `kubectl`.
    fn ask(kubectl: &str, names: &str) -> (bool, String) {
        let directory = tempfile::tempdir().unwrap();
        let notes = directory.path().join("notes");
        fs::create_dir(&notes).unwrap();
        for (file, text) in [
            ("addon-app", ""),
            ("addon-maps", ""),
            ("addon-maps.objects", "---\na\n---\nb\n"),
            ("kubeadm.yaml", ""),
        ] {
            fs::write(notes.join(file), text).unwrap();
        }
        fs::write(directory.path().join("admin.conf"), "").unwrap();
        testing::program(directory.path(), "kubectl", kubectl);
        let variables =
            [("server", "https://192.0.2.1:6443"), ("names", names), ("notes", notes.to_str().unwrap())];
        let text = script(&variables, include_str!("state.sh"))
            .replace("/etc/kubernetes/admin.conf", directory.path().join("admin.conf").to_str().unwrap());
        let output = testing::run_script(directory.path(), &text);
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    fn a_table_of_the_server_becomes_an_answer() {
        let table = "case $* in *secrets*) echo 'demo  sh.helm.release.v1.app.v3  helm.sh/release.v1  1  5m  app  deployed  3' ;; \
            *-f*) echo configmap/a; echo configmap/b ;; esac";
        let (answered, printed) = ask(table, "app");
        assert!(answered);
        let notes = "Note\tapp\nNote\tmaps\n";
        assert_eq!(
            printed.replace(' ', ""),
            format!("{notes}Release\tdemo/app\t3\tdeployed\nObjects\tmaps\t2\t2\nend\n")
        );
        let (_, printed) = ask("case $* in *-f*) echo configmap/a; exit 1 ;; esac", "");
        assert_eq!(printed.replace(' ', ""), format!("{notes}Objects\tmaps\t2\t1\nend\n"));
        let (answered, printed) = ask("exit 1", "");
        assert!(!answered && !printed.contains("end"), "an API that is silent has lost nothing: {printed}");
    }
}
