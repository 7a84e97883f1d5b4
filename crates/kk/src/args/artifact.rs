//! Options of `kk artifact …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{OutputFormat, OutputOptions};

/// `kk artifact …`
#[derive(Debug, Subcommand)]
pub enum Artifact {
    /// Export an offline bundle with everything that a manifest lists
    Export(ArtifactExport),
    /// Show the contents of a bundle
    Inspect(ArtifactInspect),
    /// Read the whole bundle and compare it with its index
    Verify(ArtifactVerify),
    /// Show the differences between two bundles
    Diff(ArtifactDiff),
    /// Merge a bundle and a delta into a new bundle
    Merge(ArtifactMerge),
    /// Unpack a bundle into the download directory
    Import(ArtifactImport),
    /// Push the images of a bundle to a registry
    #[command(subcommand, aliases = ["image", "i"])]
    Images(ArtifactImages),
}

/// `kk artifact images …`
#[derive(Debug, Subcommand)]
pub enum ArtifactImages {
    /// Push images to the private registry of a cluster
    Push(ArtifactImagesPush),
}

const EXPORT_EXAMPLES: &str = "\
Examples:
  kk artifact export -m manifest.yaml                        write kk-bundle.tar.zst
  kk artifact export -m manifest.yaml -o prod.tar.gz
  kk artifact export -m manifest.yaml --base old.tar.zst -o delta.tar.zst

An interrupted export can be run again: it fetches only the missing files. Commands that use the
bundle require your signature (--public-key): `minisign -S -m kk-bundle.tar.zst` signs it.";

/// Options of `kk artifact export`.
#[derive(Debug, Args)]
#[command(after_help = EXPORT_EXAMPLES)]
pub struct ArtifactExport {
    /// Manifest that lists the contents of the bundle; `kk create manifest` writes one
    #[arg(short, long, value_name = "FILE")]
    pub manifest: PathBuf,

    /// File to write: gzip if its name ends in .gz, otherwise zstd
    #[arg(short, long, value_name = "FILE", default_value = "kk-bundle.tar.zst")]
    pub output: PathBuf,

    /// Write a delta with only the files that this older bundle lacks; `kk artifact merge` combines both
    #[arg(long, value_name = "FILE")]
    pub base: Option<PathBuf>,

    /// Accepted for compatibility with KubeKey, without effect: downloads always stay in --workdir
    #[arg(long)]
    pub skip_remove_artifact: bool,

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
    /// Print plain lines instead of a live view (the default without a terminal or if CI is set)
    #[arg(long)]
    pub no_progress: bool,

    /// Output: progress as text on stderr, or events on stdout as one JSON object per line
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

    /// Output: tables as text, or one JSON document
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

    /// Refuse a bundle without a valid minisign signature (FILE.minisig) for this public key
    #[arg(long, value_name = "KEY-FILE")]
    pub public_key: Option<PathBuf>,

    /// Output: one line of text, or one JSON document
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

    /// Output: a table as text, or one JSON document
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

    /// The delta, written by `kk artifact export --base`
    #[arg(long, value_name = "FILE")]
    pub delta: PathBuf,

    /// Bundle to write: gzip if its name ends in .gz, otherwise zstd
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

`kk create cluster -a FILE` does this itself.")]
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

    /// Your own catalogue, if the bundle was made with one (as spec.download.catalogue)
    #[arg(long, value_name = "FILE")]
    pub catalogue: Option<PathBuf>,
}

/// The signature that a bundle must have before its content is used.
#[derive(Debug, Args)]
pub struct SignatureOptions {
    /// Minisign public key of the author of the bundle; the signature is read from FILE.minisig
    #[arg(long, value_name = "KEY-FILE", requires = "artifact")]
    pub public_key: Option<PathBuf>,

    /// Use the bundle without verifying its signature: its author becomes root on the hosts
    #[arg(long, requires = "artifact", conflicts_with = "public_key")]
    pub allow_unsigned: bool,
}

const PUSH_EXAMPLES: &str = "\
Examples:
  kk artifact images push -f cluster.yaml -a kk-bundle.tar.zst --public-key minisign.pub
  kk artifact images push -f cluster.yaml --images-dir ./images

An interrupted push can be run again: it sends only the missing images.";

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

    /// Directory with the images instead of a bundle: an OCI image layout, such as an unpacked bundle
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
