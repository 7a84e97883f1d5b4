//! Options of `kk artifact …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{OutputFormat, OutputOptions};

/// `kk artifact …`
#[derive(Debug, Subcommand)]
pub enum Artifact {
    /// Make an offline bundle of what a manifest lists
    Export(ArtifactExport),
    /// Show what a bundle holds
    Inspect(ArtifactInspect),
    /// Read every byte of a bundle, and compare it with its index
    Verify(ArtifactVerify),
    /// Show what one bundle has and another has not
    Diff(ArtifactDiff),
    /// Make a bundle of an older one and the delta that leads to it
    Merge(ArtifactMerge),
    /// Take what a bundle holds into the directory for downloads
    Import(ArtifactImport),
    /// Push the images of a bundle into a registry
    #[command(subcommand, aliases = ["image", "i"])]
    Images(ArtifactImages),
}

/// `kk artifact images …`
#[derive(Debug, Subcommand)]
pub enum ArtifactImages {
    /// Push images into the private registry of a cluster's file
    Push(ArtifactImagesPush),
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  kk artifact export -m manifest.yaml                        write kk-bundle.tar.zst
  kk artifact export -m manifest.yaml -o prod.tar.gz
  kk artifact export -m manifest.yaml --base old.tar.zst -o delta.tar.zst

Run it again when it was interrupted: only what is missing is fetched. Commands that use the bundle
ask for your signature (--public-key): `minisign -S -m kk-bundle.tar.zst` makes one.";

/// Options of `kk artifact export`.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ArtifactExport {
    /// What the bundle has to hold; kk create manifest writes one
    #[arg(short, long, value_name = "FILE")]
    pub manifest: PathBuf,

    /// File to write; .gz at its end makes it a gzip, else it is zstd
    #[arg(short, long, value_name = "FILE", default_value = "kk-bundle.tar.zst")]
    pub output: PathBuf,

    /// Write only what this older bundle does not have: a delta; kk artifact merge makes a bundle of both
    #[arg(long, value_name = "FILE")]
    pub base: Option<PathBuf>,

    /// Directory for downloads
    #[arg(long, value_name = "DIR", default_value = "./kubekey")]
    pub workdir: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub progress: ProgressOptions,
}

/// How progress is shown.
#[derive(Debug, Args)]
pub struct ProgressOptions {
    /// Print plain lines instead of a live view (as without a terminal, or with CI set)
    #[arg(long)]
    pub no_progress: bool,

    /// Progress for people on stderr, or events on stdout, one JSON object a line
    #[arg(long = "format", value_name = "FORMAT", default_value = "text")]
    pub format: OutputFormat,
}

impl From<&ProgressOptions> for OutputOptions {
    fn from(options: &ProgressOptions) -> Self {
        Self { no_progress: options.no_progress, output: options.format }
    }
}

/// Options of `kk artifact inspect`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk artifact inspect -a kk-bundle.tar.zst
  kk artifact inspect -a kk-bundle.tar.zst --output json")]
pub struct ArtifactInspect {
    /// The bundle
    #[arg(short, long, value_name = "FILE")]
    pub artifact: PathBuf,

    /// Tables for people, or one JSON document
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// Options of `kk artifact verify`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk artifact verify -a kk-bundle.tar.zst
  kk artifact verify -a kk-bundle.tar.zst --public-key minisign.pub")]
pub struct ArtifactVerify {
    /// The bundle
    #[arg(short, long, value_name = "FILE")]
    pub artifact: PathBuf,

    /// Refuse a bundle without a minisign signature (FILE.minisig beside it) by this public key
    #[arg(long, value_name = "KEY-FILE")]
    pub public_key: Option<PathBuf>,

    /// A line for people, or one JSON document
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// Options of `kk artifact diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk artifact diff --base old.tar.zst -a new.tar.zst
  kk artifact diff --base old.tar.zst -a new.tar.zst --output json")]
pub struct ArtifactDiff {
    /// The older bundle
    #[arg(long, value_name = "FILE")]
    pub base: PathBuf,

    /// The newer bundle
    #[arg(short, long, value_name = "FILE")]
    pub artifact: PathBuf,

    /// A table for people, or one JSON document
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// Options of `kk artifact merge`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk artifact merge --base old.tar.zst --delta delta.tar.zst -o new.tar.zst")]
pub struct ArtifactMerge {
    /// The bundle that the delta was made for
    #[arg(long, value_name = "FILE")]
    pub base: PathBuf,

    /// The delta: kk artifact export --base wrote it
    #[arg(long, value_name = "FILE")]
    pub delta: PathBuf,

    /// Bundle to write; .gz at its end makes it a gzip, else it is zstd
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub progress: ProgressOptions,
}

/// Options of `kk artifact import`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  kk artifact import -a kk-bundle.tar.zst --public-key minisign.pub

kk create cluster -a FILE does this by itself.")]
pub struct ArtifactImport {
    /// The bundle
    #[arg(short, long, value_name = "FILE")]
    pub artifact: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub signature: SignatureOptions,

    /// Directory for downloads
    #[arg(long, value_name = "DIR", default_value = "./kubekey")]
    pub workdir: PathBuf,

    /// A catalogue of your own, where the bundle was made with one (as spec.download.catalogue)
    #[arg(long, value_name = "FILE")]
    pub catalogue: Option<PathBuf>,
}

/// Who must have made a bundle whose content is used.
#[derive(Debug, Args)]
pub struct SignatureOptions {
    /// Minisign public key of who made the bundle; the signature is FILE.minisig beside it
    #[arg(long, value_name = "KEY-FILE", requires = "artifact")]
    pub public_key: Option<PathBuf>,

    /// Use the bundle without verifying its signature: who made it becomes root on hosts
    #[arg(long, requires = "artifact", conflicts_with = "public_key")]
    pub allow_unsigned: bool,
}

const PUSH_EXAMPLES: &str = "\
Examples:
  kk artifact images push -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub
  kk artifact images push -f cluster.yaml --images-dir ./images

Run it again when it was interrupted: only what the registry lacks is sent.";

/// Options of `kk artifact images push`.
#[derive(Debug, Args)]
#[command(after_help = PUSH_EXAMPLES, group(clap::ArgGroup::new("from").required(true).args(["artifact", "images_dir"])))]
pub struct ArtifactImagesPush {
    /// Configuration file of the cluster, or - for stdin: its spec.registry names the registry
    #[arg(short, long, value_name = "FILE")]
    pub filename: PathBuf,

    /// The bundle with the images
    #[arg(short, long, value_name = "FILE")]
    pub artifact: Option<PathBuf>,

    /// A directory with the images instead: an OCI image layout, such as an unpacked bundle
    #[arg(long, value_name = "DIR", conflicts_with = "public_key")]
    pub images_dir: Option<PathBuf>,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub signature: SignatureOptions,

    /// Directory for downloads
    #[arg(long, value_name = "DIR", default_value = "./kubekey")]
    pub workdir: PathBuf,

    #[command(flatten)]
    #[expect(missing_docs, reason = "documented at the type")]
    pub progress: ProgressOptions,
}
