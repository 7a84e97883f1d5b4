//! `kk create cluster`: creates a cluster from a file, or restores the state that the file describes.

use kk_cluster::{Certificates, Options, Session, Settings};
use kk_config::{Balancer, Host, Overrides, Spec};
use kk_engine::{Node, Output, Summary};

use crate::args::CreateCluster;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

use super::{
    bundle, load,
    run::{Run, any_answered, name_left, refuse_without, settings},
};

pub(super) async fn run(args: &CreateCluster, printer: &Printer) -> Result<ExitStatus, Error> {
    Run::check_consent(&args.run, printer)?;
    let overrides = Overrides {
        kubernetes_version: args.with_kubernetes,
        kubesphere_version: args.with_kubesphere.clone(),
        ..Overrides::default()
    };
    let input = load::input_with(args.filename.as_deref(), &overrides)?;
    let settings = settings_of(args, &input.spec, printer).await?;
    let (session, mut run) = Run::start("create cluster", input, settings, &args.run, printer)?;
    let result = create(&session, &mut run).await;
    run.finish(result).await
}

async fn create(session: &Session, run: &mut Run<'_>) -> Result<Option<Summary>, Error> {
    bundle::take(session, run).await?;
    let probe = session.probe_for_create(run.stop_token(), |host| run.host_probed(host));
    let probed = any_answered(run.unless_stopped(probe).await?)?;
    let create = run.unless_stopped(session.plan_create(&probed)).await?;
    create.notes.iter().for_each(|note| run.note(note));
    let verdict = run.report_findings(&create.findings);
    let tasks = run.report_plan(&create.plan);
    refuse_without(&create.needed)?;
    verdict?;
    if run.is_dry_run() {
        return name_left(&probed).map(|()| None);
    }
    if !run.confirm("Create this cluster?", &tasks).await? {
        return Ok(None);
    }
    // The plan contains everything that it needs of these. The rest would cost noticeable memory with a thousand hosts.
    let left = name_left(&probed);
    drop((probed, tasks));
    run.execute(create.plan).await?;
    left?;
    Ok(Some(summary(session, &create.certificates)))
}

async fn settings_of(args: &CreateCluster, spec: &Spec, printer: &Printer) -> Result<Settings, Error> {
    Ok(Settings {
        templates: args.source.templates.clone(),
        options: Options {
            skip_pull_images: args.skip_pull_images,
            bundle: bundle::open(&args.source, spec, printer).await?,
            with_packages: args.with_packages,
            skip_addons: args.skip_install_addons,
            ..Options::default()
        },
        ..settings(&args.run)
    })
}

fn summary(session: &Session, certificates: &Certificates) -> Summary {
    let spec = session.spec();
    let path = session.directory().join("kubeconfig");
    let output = |name: &str, value: String| Output { name: name.into(), value };
    let mut outputs = vec![output("API", endpoint(spec)), output("kubeconfig", path.display().to_string())];
    outputs.extend(certificates.until(&path).map(|until| output("certificates", until)));
    Summary {
        message: format!("cluster {} is ready: Kubernetes {}", spec.name, spec.kubernetes.version),
        nodes: spec.nodes().into_iter().map(node).collect(),
        outputs,
        next: Some(kubectl_get_nodes(session)),
    }
}

/// The command to continue with.
pub(super) fn kubectl_get_nodes(session: &Session) -> String {
    format!("kubectl --kubeconfig {} get nodes", session.directory().join("kubeconfig").display())
}

fn endpoint(spec: &Spec) -> String {
    let endpoint = &spec.control_plane_endpoint;
    let address = match endpoint.balancer {
        Balancer::Haproxy => " (on the nodes; from elsewhere use a control plane)".to_owned(),
        Balancer::None | Balancer::KubeVip(_) => {
            endpoint.address.map_or_else(String::new, |address| format!(" ({address})"))
        }
    };
    format!("https://{}:{}{address}", endpoint.domain, endpoint.port)
}

/// A node of the summary.
pub(super) fn node(host: &Host) -> Node {
    Node {
        name: host.name.clone(),
        address: host.internal_address.to_string(),
        roles: host.roles.iter().map(ToString::to_string).collect(),
    }
}
