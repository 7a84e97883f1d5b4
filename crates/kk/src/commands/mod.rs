//! One file per command. Code that several commands share is in `load` and `run`.

mod add_nodes;
mod artifact;
mod bundle;
mod completion;
mod config_schema;
mod config_validate;
mod create_cluster;
mod create_config;
mod create_manifest;
mod delete_cluster;
mod delete_node;
mod delete_registry;
mod etcd_defrag;
mod etcd_restore;
mod etcd_snapshot;
mod init_registry;
mod kubectl;
mod load;
mod look;
mod man_pages;
mod new_file;
mod renew_certs;
mod rotate_ca;
mod rounds;
mod run;
mod upgrade;
mod version;
mod versions;

use kk_engine::Warning;

use crate::args::{Add, Artifact, Certs, Cli, Command, Config, Create, Delete, Etcd, Init, OutputOptions};
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// Executes the command line and reports how it ended.
pub async fn run(cli: Cli) -> ExitStatus {
    let printer = printer(&cli.command);
    for warning in zone(&cli.command).into_iter().chain(without_effect(&cli.command)) {
        printer.warning(warning);
    }
    // Boxed, because one future for all commands is as large as the largest.
    Box::pin(dispatch(cli.command, &printer)).await.unwrap_or_else(|error| {
        printer.error(&error);
        error.status()
    })
}

/// KubeKey 3 chooses mirrors by this variable, and users set it from habit.
const ZONE: &str = "KKZONE";

/// The warning for commands that download files, or that check where files are downloaded from.
fn zone(command: &Command) -> Option<Warning> {
    let downloads = matches!(
        command,
        Command::Create(Create::Cluster(_) | Create::Manifest(_))
            | Command::Init(_)
            | Command::Add(_)
            | Command::Upgrade(_)
            | Command::Artifact(Artifact::Export(_))
            | Command::Config(Config::Validate(_))
    );
    let value = std::env::var_os(ZONE).filter(|value| downloads && !value.is_empty())?;
    let hint = "name mirrors in the file: spec.download.mirror for programs, spec.registry.remoteMirrors or \
                privateRegistry for images";
    Some(Warning {
        message: format!("{ZONE}={} has no effect: only KubeKey reads it", value.to_string_lossy()),
        hint: Some(hint.to_owned()),
        place: None,
    })
}

/// The note about an option that kk accepts only because command lines for KubeKey have it.
fn without_effect(command: &Command) -> Option<Warning> {
    let (option, reason) = match command {
        Command::Create(Create::Cluster(args)) if args.skip_push_images => {
            ("--skip-push-images", "only `kk artifact images push` pushes images")
        }
        Command::Artifact(Artifact::Export(args)) if args.skip_remove_artifact => {
            ("--skip-remove-artifact", "downloads always stay in --workdir")
        }
        _ => return None,
    };
    Some(Warning { message: format!("{option} has no effect: {reason}"), hint: None, place: None })
}

fn printer(command: &Command) -> Printer {
    match command {
        Command::Create(Create::Cluster(args)) => Printer::new(args.run.output),
        Command::Init(Init::Registry(args)) => Printer::new(args.run.output),
        Command::Delete(Delete::Registry(args)) => Printer::new(args.run.output),
        Command::Add(Add::Nodes(args)) => Printer::new(args.run.output),
        Command::Delete(Delete::Node(args)) => Printer::new(args.run.output),
        Command::Delete(Delete::Cluster(args)) => Printer::new(args.run.output),
        Command::Certs(Certs::Renew(args)) => Printer::new(args.run.output),
        Command::Certs(Certs::RotateCa(args)) => Printer::new(args.run.output),
        Command::Etcd(Etcd::Snapshot(args)) => Printer::new(args.run.output),
        Command::Etcd(Etcd::Restore(args)) => Printer::new(args.run.output),
        Command::Etcd(Etcd::Defrag(args)) => Printer::new(args.run.output),
        Command::Upgrade(args) => Printer::new(args.run.output),
        Command::Artifact(command) => artifact::printer(command),
        Command::Config(Config::Validate(args)) => {
            Printer::new(OutputOptions { no_progress: true, output: args.output })
        }
        // They print no events, but a document or a text.
        Command::Create(Create::Config(_) | Create::Manifest(_))
        | Command::Certs(Certs::CheckExpiration(_))
        | Command::Etcd(Etcd::Status(_))
        | Command::Config(Config::Schema)
        | Command::Status(_)
        | Command::Completion(_)
        | Command::ManPages(_)
        | Command::Versions(_)
        | Command::Version(_) => Printer::plain(),
    }
}

async fn dispatch(command: Command, printer: &Printer) -> Result<ExitStatus, Error> {
    match command {
        Command::Create(Create::Cluster(args)) => return Box::pin(create_cluster::run(&args, printer)).await,
        Command::Init(Init::Registry(args)) => return init_registry::run(&args, printer).await,
        Command::Delete(Delete::Registry(args)) => return delete_registry::run(&args, printer).await,
        Command::Add(Add::Nodes(args)) => return add_nodes::run(&args, printer).await,
        Command::Delete(Delete::Cluster(args)) => return delete_cluster::run(&args, printer).await,
        Command::Delete(Delete::Node(args)) => return Box::pin(delete_node::run(&args, printer)).await,
        Command::Etcd(Etcd::Snapshot(args)) => return etcd_snapshot::run(&args, printer).await,
        Command::Etcd(Etcd::Restore(args)) => return etcd_restore::run(&args, printer).await,
        Command::Etcd(Etcd::Defrag(args)) => return etcd_defrag::run(&args, printer).await,
        Command::Etcd(Etcd::Status(args)) => return look::etcd_status(&args.look, printer).await,
        Command::Upgrade(args) => return upgrade::run(&args, printer).await,
        Command::Status(args) => return look::status(&args.look, printer).await,
        Command::Certs(Certs::CheckExpiration(args)) => {
            return look::check_expiration(&args.look, printer).await;
        }
        Command::Certs(Certs::Renew(args)) => return renew_certs::run(&args, printer).await,
        Command::Certs(Certs::RotateCa(args)) => return rotate_ca::run(&args, printer).await,
        Command::Artifact(command) => return artifact::run(&command, printer).await,
        Command::Create(Create::Config(args)) => create_config::run(&args, printer).await,
        Command::Create(Create::Manifest(args)) => create_manifest::run(&args, printer).await,
        Command::Config(Config::Validate(args)) => config_validate::run(&args, printer),
        Command::Config(Config::Schema) => config_schema::run(printer),
        Command::Completion(args) => completion::run(&args, printer),
        Command::ManPages(args) => man_pages::run(&args),
        Command::Versions(command) => versions::run(&command, printer),
        Command::Version(args) => version::run(&args, printer),
    }?;
    Ok(ExitStatus::Ok)
}
