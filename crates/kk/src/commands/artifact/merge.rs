//! `kk artifact merge`: merges an older bundle and a delta.

use std::sync::atomic::{AtomicU64, Ordering};

use kk_artifact::bundle::{self, BundleIndex, Difference};
use kk_engine::{Output, Summary};

use crate::args::ArtifactMerge;
use crate::error::Error;
use crate::exit::ExitStatus;
use crate::printer::{Printer, text};

use super::local_run::LocalRun;
use super::{export, failed, refuse_same};

pub(super) fn run(args: &ArtifactMerge, printer: &Printer) -> Result<ExitStatus, Error> {
    refuse_same(&args.output, &args.base)?;
    refuse_same(&args.output, &args.delta)?;
    let run = LocalRun::start("artifact merge", "bundle", printer, &kk_artifact::stored_logins());
    let result = tokio::task::block_in_place(|| merge(args, &run));
    let changed = usize::from(result.is_ok());
    run.finish(result, changed)
}

fn merge(args: &ArtifactMerge, run: &LocalRun<'_>) -> Result<Summary, Error> {
    let base = bundle::index(&args.base).map_err(|error| failed(&[error]))?;
    let step = run.begin("merge", "Merge the bundle");
    let done = AtomicU64::new(0);
    let wrote = |bytes| {
        let done = done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        run.progress(step, done, base.size());
    };
    let index = bundle::merge(&args.base, &args.delta, &args.output, &wrote);
    let index = index.map_err(|error| failed(&[error]))?;
    run.end(step, format!("write {}", args.output.display()));
    Ok(summary(args, &base, &index))
}

fn summary(args: &ArtifactMerge, base: &BundleIndex, index: &BundleIndex) -> Summary {
    let output = |name: &str, value: String| Output { name: name.into(), value };
    let difference = Difference::between(base, index);
    Summary {
        message: format!("{} is complete", args.output.display()),
        outputs: vec![
            output("holds", export::held(index)),
            output(
                "new",
                format!("{}, {}", text::count(difference.parts.len(), "part"), text::bytes(difference.bytes)),
            ),
        ],
        ..Summary::default()
    }
}
