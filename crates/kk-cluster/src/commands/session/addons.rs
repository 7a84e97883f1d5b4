//! Contents of addons, fetched before the first change if the addons have to be installed.

use std::collections::BTreeSet;

use kk_artifact::{Error, Obtained, newest_version, obtain};
use kk_config::{ChartSource, ManifestSource};
use kk_engine::Finding;

use super::Session;
use crate::{
    base::{
        error::BuildError,
        probed::Probed,
        supply::{self, Wanted, not_fetched},
    },
    capabilities::addons::{self, secret_values},
    model::inputs::Inputs,
};

/// The charts and manifests that have to be fetched.
#[derive(Default)]
struct Remote {
    charts: BTreeSet<ChartSource>,
    manifests: BTreeSet<ManifestSource>,
}

impl Remote {
    fn add(&mut self, addon: &Wanted) {
        let has_version = addon.open_chart().is_none();
        let charts = addon.chart.iter().filter(|part| part.is_remote && has_version);
        self.charts.extend(charts.map(|part| part.source.clone()));
        let manifests = addon.manifests.iter().chain(&addon.values_url).filter(|part| part.is_remote);
        self.manifests.extend(manifests.map(|part| part.source.clone()));
    }
}

impl Session {
    /// Fetches the charts and manifests of addons that have to be installed. A failed download is an error of the plan.
    pub(in crate::commands) async fn fetch_addons(&self, inputs: &mut Inputs<'_>) -> Vec<Finding> {
        let open: BTreeSet<ChartSource> =
            addons::needed(inputs).filter_map(|addon| addon.open_chart().cloned()).collect();
        let mut errors = self.choose_versions(inputs, &open).await;
        let mut wanted = Remote::default();
        addons::needed(inputs).for_each(|addon| wanted.add(addon));
        match self.obtain(&wanted).await {
            Ok(obtained) => self.take(inputs, &obtained),
            Err(more) => errors.extend(more),
        }
        not_fetched(&errors)
    }

    /// Sets the newest versions of charts whose version the file leaves open.
    async fn choose_versions(&self, inputs: &mut Inputs<'_>, open: &BTreeSet<ChartSource>) -> Vec<Error> {
        let mut errors = Vec::new();
        for source in open {
            match newest_version(source, self.artifacts.mirror(), &self.artifacts.store).await {
                Ok(version) => {
                    for addon in &mut inputs.addons {
                        addon.choose_version(source, &version);
                    }
                }
                Err(error) => errors.push(error),
            }
        }
        errors
    }

    /// The same for a plan that has to be completed, because the cluster was changed already: an addon whose content cannot be
    /// fetched is left out of the plan. Returns a warning for each.
    pub(in crate::commands) async fn fetch_or_leave_addons(&self, inputs: &mut Inputs<'_>) -> Vec<Finding> {
        let mut left_out = Vec::new();
        if !self.fetch_addons(inputs).await.is_empty() {
            // Fetches them one by one to find out which of them fail.
            let needed: Vec<String> = addons::needed(inputs).map(|addon| addon.addon.name.clone()).collect();
            for name in needed {
                let is_it = |addon: &&Wanted| addon.addon.name == name;
                let open = inputs.addons.iter().find(is_it).and_then(Wanted::open_chart);
                let open = open.cloned().into_iter().collect();
                let mut errors = self.choose_versions(inputs, &open).await;
                let mut wanted = Remote::default();
                inputs.addons.iter().filter(is_it).for_each(|addon| wanted.add(addon));
                match self.obtain(&wanted).await {
                    Ok(obtained) => self.take(inputs, &obtained),
                    Err(more) => errors.extend(more),
                }
                if !errors.is_empty() {
                    left_out.push((name, not_fetched(&errors)));
                }
            }
        }
        let unread = inputs.addons.iter().filter(|addon| !addon.problems.is_empty());
        left_out.extend(unread.map(|addon| (addon.addon.name.clone(), addon.problems.clone())));
        inputs.addons.retain(|addon| left_out.iter().all(|(name, _)| *name != addon.addon.name));
        left_out.iter().flat_map(|(name, problems)| supply::left_out(name, problems)).collect()
    }

    /// Warnings about the addons that a command which ends with [`Session::plan_rest`] would leave unchanged, according to the
    /// answers of the hosts.
    ///
    /// # Errors
    /// As [`Session::plan_create`].
    pub async fn addons_left_out(&self, probed: &Probed) -> Result<Vec<Finding>, BuildError> {
        let mut inputs = self.create_inputs(probed).await?;
        Ok(self.fetch_or_leave_addons(&mut inputs).await)
    }

    async fn obtain(&self, wanted: &Remote) -> Result<Obtained, Vec<Error>> {
        let (mirror, store) = (self.artifacts.mirror(), &self.artifacts.store);
        obtain(&wanted.charts, &wanted.manifests, mirror, &self.spec.registry, store).await
    }

    /// Stores the fetched contents in their addons.
    fn take(&self, inputs: &mut Inputs<'_>, obtained: &Obtained) {
        for addon in &mut inputs.addons {
            for part in addon.chart.iter_mut().filter(|part| part.is_remote) {
                part.content = part.content.take().or_else(|| obtained.charts.get(&part.source).cloned());
            }
            let files = addon.manifests.iter_mut().chain(&mut addon.values_url);
            for part in files.filter(|part| part.is_remote) {
                part.content = part.content.take().or_else(|| obtained.manifests.get(&part.source).cloned());
            }
            addon.take_values();
        }
        self.hide_values(&inputs.addons);
    }

    /// Hides the secrets in files with values that were fetched from a server, or are in a bundle.
    pub(super) fn hide_values(&self, addons: &[Wanted]) {
        let values = addons.iter().filter(|addon| addon.values_url.is_some());
        let texts = values.filter_map(|addon| std::str::from_utf8(addon.values.as_deref()?).ok());
        self.hide(&texts.flat_map(secret_values).collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        io::{BufRead as _, BufReader, Write as _},
        net::TcpListener,
        path::Path,
        thread,
    };

    use crate::testing;

    /// A repository with versions of a chart, and a file with values. Returns its address.
    fn repository(here: &Path) -> String {
        let chart = here.join("chart");
        fs::create_dir(&chart).unwrap();
        fs::write(chart.join("Chart.yaml"), "apiVersion: v2\nname: app\nversion: 1.10.0\n").unwrap();
        let path = chart.to_str().unwrap();
        let packed = kk_artifact::local_chart(&kk_config::ChartSource::Path(path.to_owned()), path).unwrap();
        let versions = ["1.9.0", "1.10.0", "2.0.0-rc.1"];
        let entries = versions.map(|version| format!("{{version: {version}, urls: [app-{version}.tgz]}}"));
        let index = format!("entries: {{app: [{}]}}", entries.join(", "));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let request = lines.next().unwrap().unwrap();
                lines.find(|line| line.as_ref().is_ok_and(String::is_empty));
                let words: Vec<&str> = request.split(' ').collect();
                let content: &[u8] = match words[1] {
                    "/index.yaml" => index.as_bytes(),
                    "/app-1.10.0.tgz" => &packed.0,
                    "/values.yaml" => b"adminPassword: SENTINEL\n",
                    other => panic!("{other}"),
                };
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    content.len()
                );
                stream.write_all(head.as_bytes()).unwrap();
                if words[0] == "GET" {
                    stream.write_all(content).unwrap();
                }
            }
        });
        format!("http://{address}")
    }

    #[tokio::test]
    async fn a_chart_without_a_version_gets_the_newest_stable_one_and_values_by_their_url() {
        let directory = tempfile::tempdir().unwrap();
        let server = repository(directory.path());
        let mut spec = testing::sample("all-in-one.yaml");
        spec.addons = testing::addons(&format!(
            "[{{name: app, sources: {{chart: {{name: app, repo: '{server}', valuesFile: '{server}/values.yaml'}}}}}}]"
        ));
        let (session, fresh) = (testing::session(spec.clone(), directory.path()), testing::fresh(&spec));
        let mut inputs = session.create_inputs(&fresh).await.unwrap();
        let found = session.fetch_addons(&mut inputs).await;
        assert!(found.is_empty(), "{found:?}");
        let addon = &inputs.addons[0];
        assert!(addon.is_here());
        assert_eq!(addon.values.as_deref(), Some(&b"adminPassword: SENTINEL\n"[..]));
        assert!(addon.note().contains(" 1.10.0 "), "{}", addon.note());
        assert!(!session.redactor().text("SENTINEL").contains("SENTINEL"));
    }
}
