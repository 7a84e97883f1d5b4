//! Commands that query a running operator over its debug socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use shell_operator::{duration, flags};

/// How long an operator may take for a part of its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the operator listens.
#[derive(Args)]
pub(crate) struct SocketArgs {
    /// Unix socket of the operator
    #[arg(long, env = "DEBUG_UNIX_SOCKET", hide = true, default_value = flags::SOCKET, global = true)]
    debug_unix_socket: PathBuf,
}

#[derive(Args)]
pub(super) struct OutputArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Text,
    Json,
    Yaml,
}

impl OutputArgs {
    fn extension(&self) -> &'static str {
        match self.output {
            Output::Text => "text",
            Output::Json => "json",
            Output::Yaml => "yaml",
        }
    }
}

/// `shell-operator queue`
#[derive(Subcommand)]
pub(crate) enum QueueCommand {
    /// Show all queues
    List {
        #[command(flatten)]
        output: OutputArgs,
        /// Show empty queues too
        #[arg(short = 'e', long)]
        show_empty: bool,
        /// Repeat until interrupted
        #[arg(short, long)]
        watch: bool,
        /// Time between two updates
        #[arg(short = 't', long = "watchInterval", default_value = "1s", value_parser = interval)]
        watch_interval: Duration,
    },
    /// Show the queue 'main'
    Main {
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// `shell-operator hook`
#[derive(Subcommand)]
pub(crate) enum HookCommand {
    /// Show the names of the hooks
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show the objects in the snapshots of a hook's bindings
    Snapshot {
        /// Name of the hook
        hook: String,
        #[command(flatten)]
        output: OutputArgs,
    },
}

/// `shell-operator config`
#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show the parameters that can be changed
    List {
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Change a parameter, temporarily or permanently
    Set {
        /// Name, such as log.level
        name: String,
        /// New value
        value: String,
        /// Time after which the change is reverted, such as 10m
        duration: Option<String>,
    },
}

fn interval(text: &str) -> Result<Duration, String> {
    duration::parse(text).ok_or_else(|| format!("'{text}' is not a duration like 1s"))
}

pub(crate) fn queue(socket: &SocketArgs, command: &QueueCommand) -> anyhow::Result<()> {
    match command {
        QueueCommand::Main { output } => show(socket, &format!("/queue/main.{}", output.extension())),
        QueueCommand::List { output, show_empty, watch, watch_interval } => {
            let path = format!("/queue/list.{}?showEmpty={show_empty}", output.extension());
            loop {
                let answer = ask(socket, "GET", &path, "")?;
                if !watch {
                    super::print(answer.trim_end());
                    return Ok(());
                }
                // Clears the screen and starts at its top.
                super::print(&format!("\x1b[2J\x1b[H{}", answer.trim_end()));
                std::thread::sleep(*watch_interval);
            }
        }
    }
}

pub(crate) fn hook(socket: &SocketArgs, command: &HookCommand) -> anyhow::Result<()> {
    match command {
        HookCommand::List { output } => show(socket, &format!("/hook/list.{}", output.extension())),
        HookCommand::Snapshot { hook, output } => {
            show(socket, &format!("/hook/{}/snapshots.{}", in_path(hook), output.extension()))
        }
    }
}

pub(crate) fn config(socket: &SocketArgs, command: &ConfigCommand) -> anyhow::Result<()> {
    match command {
        ConfigCommand::List { output } => show(socket, &format!("/config/list.{}", output.extension())),
        ConfigCommand::Set { name, value, duration } => {
            let mut form = form_urlencoded::Serializer::new(String::new());
            form.append_pair("name", name).append_pair("value", value);
            if let Some(duration) = duration {
                form.append_pair("duration", duration);
            }
            ask(socket, "POST", "/config/set", &form.finish()).map(drop)
        }
    }
}

/// A hook's name as part of a path: it may have any characters.
fn in_path(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Shows the answer to `GET path`.
pub(crate) fn show(socket: &SocketArgs, path: &str) -> anyhow::Result<()> {
    let answer = ask(socket, "GET", path, "")?;
    super::print(answer.trim_end());
    Ok(())
}

/// One request over the socket, in HTTP/1.0: the answer ends with the connection.
fn ask(socket: &SocketArgs, method: &str, path: &str, form: &str) -> anyhow::Result<String> {
    let file = &socket.debug_unix_socket;
    let mut stream = UnixStream::connect(file).with_context(|| {
        format!(
            "cannot reach an operator at {}\nhint: is it running? --debug-unix-socket must be the same",
            file.display()
        )
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let length = form.len();
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: operator\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: {length}\r\n\r\n{form}"
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(|| format!("no answer from {}", file.display()))?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the operator gave no answer")?;
    if head.split(' ').nth(1) != Some("200") {
        bail!("{}", body.trim_end());
    }
    Ok(body.to_owned())
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_hooks_may_have_any_characters() {
        assert_eq!(super::in_path("sub/a b?.sh"), "sub/a%20b%3F.sh");
        assert_eq!(super::in_path("ü"), "%C3%BC");
    }
}
