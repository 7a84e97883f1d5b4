//! Flags and variables as the original takes them.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use clap::{Arg, ArgAction, Command, CommandFactory};

/// The command of `C`, whose flags are [`Flags`](super::Flags) and perhaps others: an empty variable is treated as unset, and
/// a flag that switches something on takes a value.
pub fn command<C: CommandFactory>() -> Command {
    adapt(C::command())
}

fn adapt(command: Command) -> Command {
    command.mut_args(adapt_arg).mut_subcommands(adapt)
}

fn adapt_arg(arg: Arg) -> Arg {
    let Some(name) = arg.get_env() else { return arg };
    // clap has read the variable already, and would hand an empty one to the parser of the flag.
    let empty = std::env::var_os(name).is_some_and(|value| value.is_empty());
    let arg = if empty { arg.env(None::<&str>) } else { arg };
    if !matches!(arg.get_action(), ArgAction::SetTrue) {
        return arg;
    }
    arg.action(ArgAction::Set)
        .num_args(0..=1)
        .require_equals(true)
        .default_value("false")
        .default_missing_value("true")
        .hide_default_value(true)
        .value_name("BOOL")
}

/// Whether something is switched on: values as Go reads them, and some more.
pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "1" | "t" | "true" | "y" | "yes" | "on" => Ok(true),
        "0" | "f" | "false" | "n" | "no" | "off" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

/// An address to listen on, or a name of this machine like `localhost`.
pub(super) fn host(text: &str) -> Result<IpAddr, String> {
    match text.parse() {
        Ok(address) => Ok(address),
        Err(_) => resolve((text, 0)).map(|address| address.ip()),
    }
}

/// `host:port`, where no host means all addresses.
pub(super) fn host_and_port(text: &str) -> Result<SocketAddr, String> {
    if text.starts_with(':') { resolve(&*format!("0.0.0.0{text}")) } else { resolve(text) }
}

/// The first address of a name, an IPv4 one if there is one.
fn resolve(name: impl ToSocketAddrs) -> Result<SocketAddr, String> {
    let found: Vec<SocketAddr> = name.to_socket_addrs().map_err(|error| error.to_string())?.collect();
    let address = found.iter().find(|address| address.is_ipv4()).or(found.first());
    address.copied().ok_or_else(|| "the name has no address".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Flags {
        #[arg(long, env = "SHELL_OPERATOR_TEST_NOT_SET", value_parser = switch)]
        on: bool,
        rest: Vec<String>,
    }

    #[test]
    fn switches_take_a_value() {
        let cases: [(&str, &[&str], Option<bool>); 6] = [
            ("absent", &[], Some(false)),
            ("alone", &["--on"], Some(true)),
            ("with_true", &["--on=true"], Some(true)),
            ("with_false", &["--on=false"], Some(false)),
            ("word_after_it", &["--on", "false"], Some(true)),
            ("no_word_for_it", &["--on=maybe"], None),
        ];
        for (case, arguments, expected) in cases {
            let arguments = ["test"].iter().chain(arguments);
            let found = command::<Flags>().try_get_matches_from(arguments);
            let flags = found.and_then(|found| clap::FromArgMatches::from_arg_matches(&found));
            assert_eq!(flags.ok().map(|flags: Flags| flags.on), expected, "{case}");
        }
    }

    #[test]
    fn switches_are_read_as_go_reads_them() {
        for (text, expected) in [
            ("1", Some(true)),
            ("True", Some(true)),
            ("yes", Some(true)),
            ("0", Some(false)),
            ("f", Some(false)),
            ("maybe", None),
        ] {
            assert_eq!(switch(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn addresses_may_leave_out_the_host() {
        for (text, expected) in [
            (":80", Some("0.0.0.0:80")),
            ("127.0.0.1:80", Some("127.0.0.1:80")),
            ("localhost:80", Some("127.0.0.1:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("80", None),
        ] {
            assert_eq!(
                host_and_port(text).ok().map(|address| address.to_string()).as_deref(),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn hosts_may_be_names() {
        for (text, expected) in
            [("0.0.0.0", Some("0.0.0.0")), ("::1", Some("::1")), ("localhost", Some("127.0.0.1")), ("", None)]
        {
            assert_eq!(host(text).ok().map(|address| address.to_string()).as_deref(), expected, "{text}");
        }
    }
}
