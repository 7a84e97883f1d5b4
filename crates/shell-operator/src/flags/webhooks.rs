//! Flags of the webhook servers.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

use super::command::{host, switch};
use crate::operator::{TlsFiles, WebhookServer, WebhookSettings};

/// The flags of one server: both have the same, under names of their own.
macro_rules! server_flags {
    ($flags:ident of $webhooks:literal: $flag:literal, $variable:literal, $certificates:literal, $port:literal) => {
        #[derive(Args, Debug)]
        struct $flags {
            #[arg(
                id = concat!($flag, "-service-name"),
                long = concat!($flag, "-service-name"),
                env = concat!($variable, "_SERVICE_NAME"),
                value_name = "NAME",
                default_value = concat!("shell-operator-", $certificates, "-svc"),
                help = concat!("Service of the ", $webhooks, " webhooks")
            )]
            service: String,
            #[arg(
                id = concat!($flag, "-server-cert"),
                long = concat!($flag, "-server-cert"),
                env = concat!($variable, "_SERVER_CERT"),
                value_name = "FILE",
                default_value = concat!("/", $certificates, "-certs/tls.crt"),
                help = concat!("Certificate of the ", $webhooks, " webhooks")
            )]
            certificate: PathBuf,
            #[arg(
                id = concat!($flag, "-server-key"),
                long = concat!($flag, "-server-key"),
                env = concat!($variable, "_SERVER_KEY"),
                value_name = "FILE",
                default_value = concat!("/", $certificates, "-certs/tls.key"),
                help = concat!("Key of the ", $webhooks, " webhooks")
            )]
            key: PathBuf,
            #[arg(
                id = concat!($flag, "-ca"),
                long = concat!($flag, "-ca"),
                env = concat!($variable, "_CA"),
                value_name = "FILE",
                default_value = concat!("/", $certificates, "-certs/ca.crt"),
                help = concat!("Certificate authority of the ", $webhooks, " webhooks")
            )]
            ca: PathBuf,
            #[arg(
                id = concat!($flag, "-client-ca"),
                long = concat!($flag, "-client-ca"),
                env = concat!($variable, "_CLIENT_CA"),
                value_name = "FILE",
                value_delimiter = ',',
                help = concat!("Certificate authority that must have signed the certificates of clients of the ", $webhooks, " webhooks")
            )]
            client_ca: Vec<PathBuf>,
            #[arg(
                id = concat!($flag, "-listen-port"),
                long = concat!($flag, "-listen-port"),
                env = concat!($variable, "_LISTEN_PORT"),
                value_name = "PORT",
                default_value = $port,
                help = concat!("Port of the ", $webhooks, " webhooks")
            )]
            port: u16,
            #[arg(
                id = concat!($flag, "-listen-address"),
                long = concat!($flag, "-listen-address"),
                env = concat!($variable, "_LISTEN_ADDRESS"),
                value_name = "ADDRESS",
                default_value = "0.0.0.0",
                value_parser = host,
                help = concat!("Address of the ", $webhooks, " webhooks")
            )]
            address: IpAddr,
        }

        impl From<$flags> for WebhookServer {
            fn from(flags: $flags) -> Self {
                let $flags { service, certificate, key, ca, client_ca, port, address } = flags;
                let tls = TlsFiles { certificate, key, client_ca };
                Self { service, tls, ca, listen: SocketAddr::new(address, port) }
            }
        }
    };
}

server_flags!(Admission of "admission": "validating-webhook", "VALIDATING_WEBHOOK", "validating", "9680");
server_flags!(Conversion of "conversion": "conversion-webhook", "CONVERSION_WEBHOOK", "conversion", "9681");

#[derive(Args, Debug)]
pub(super) struct WebhookFlags {
    /// Name of the webhook configurations; the operator appends '-hooks'
    #[arg(
        long,
        env = "VALIDATING_WEBHOOK_CONFIGURATION_NAME",
        value_name = "NAME",
        default_value = "shell-operator-hooks"
    )]
    validating_webhook_configuration_name: String,
    /// Failure policy of admission webhooks whose hook does not set one
    #[arg(long, env = "VALIDATING_WEBHOOK_FAILURE_POLICY", value_name = "POLICY", default_value = "Fail", value_parser = ["Fail", "Ignore"])]
    validating_webhook_failure_policy: String,
    #[command(flatten)]
    admission: Admission,
    #[command(flatten)]
    conversion: Conversion,
    /// Create the certificates of the webhooks and store them in a Secret
    #[arg(long, env = "WEBHOOK_SELF_SIGNED", value_parser = switch)]
    webhook_self_signed: bool,
    /// Host name or address at which the API server reaches the webhooks of an operator outside the cluster
    #[arg(
        long,
        env = "WEBHOOK_EXTERNAL_HOST",
        value_name = "HOST",
        default_value = "",
        hide_default_value = true
    )]
    webhook_external_host: String,
}

impl WebhookFlags {
    pub(super) fn settings(self, namespace: String) -> WebhookSettings {
        WebhookSettings {
            namespace,
            configuration_name: self.validating_webhook_configuration_name,
            failure_policy: self.validating_webhook_failure_policy,
            admission: self.admission.into(),
            conversion: self.conversion.into(),
            self_signed: self.webhook_self_signed,
            external_host: Some(self.webhook_external_host).filter(|host| !host.is_empty()),
        }
    }
}
