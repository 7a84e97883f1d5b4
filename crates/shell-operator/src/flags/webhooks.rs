//! Flags of the webhook servers.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

use super::command::{host, switch};
use crate::operator::{TlsFiles, WebhookServer, WebhookSettings};

#[derive(Args, Debug)]
pub(super) struct WebhookFlags {
    /// Name of the webhook configurations; '-hooks' is added
    #[arg(
        long,
        env = "VALIDATING_WEBHOOK_CONFIGURATION_NAME",
        value_name = "NAME",
        default_value = "shell-operator-hooks"
    )]
    validating_webhook_configuration_name: String,
    /// Service of the admission webhooks
    #[arg(
        long,
        env = "VALIDATING_WEBHOOK_SERVICE_NAME",
        value_name = "NAME",
        default_value = "shell-operator-validating-svc"
    )]
    validating_webhook_service_name: String,
    /// Certificate of the admission webhooks
    #[arg(
        long,
        env = "VALIDATING_WEBHOOK_SERVER_CERT",
        value_name = "FILE",
        default_value = "/validating-certs/tls.crt"
    )]
    validating_webhook_server_cert: PathBuf,
    /// Key of the admission webhooks
    #[arg(
        long,
        env = "VALIDATING_WEBHOOK_SERVER_KEY",
        value_name = "FILE",
        default_value = "/validating-certs/tls.key"
    )]
    validating_webhook_server_key: PathBuf,
    /// Certificate authority of the admission webhooks
    #[arg(
        long,
        env = "VALIDATING_WEBHOOK_CA",
        value_name = "FILE",
        default_value = "/validating-certs/ca.crt"
    )]
    validating_webhook_ca: PathBuf,
    /// Certificate authority that clients of the admission webhooks need
    #[arg(long, env = "VALIDATING_WEBHOOK_CLIENT_CA", value_name = "FILE", value_delimiter = ',')]
    validating_webhook_client_ca: Vec<PathBuf>,
    /// What happens when an admission webhook does not answer, for hooks that do not say it
    #[arg(long, env = "VALIDATING_WEBHOOK_FAILURE_POLICY", value_name = "POLICY", default_value = "Fail", value_parser = ["Fail", "Ignore"])]
    validating_webhook_failure_policy: String,
    /// Port of the admission webhooks
    #[arg(long, env = "VALIDATING_WEBHOOK_LISTEN_PORT", value_name = "PORT", default_value = "9680")]
    validating_webhook_listen_port: u16,
    /// Address of the admission webhooks
    #[arg(
        long,
        env = "VALIDATING_WEBHOOK_LISTEN_ADDRESS",
        value_name = "ADDRESS",
        default_value = "0.0.0.0",
        value_parser = host
    )]
    validating_webhook_listen_address: IpAddr,
    /// Service of the conversion webhooks
    #[arg(
        long,
        env = "CONVERSION_WEBHOOK_SERVICE_NAME",
        value_name = "NAME",
        default_value = "shell-operator-conversion-svc"
    )]
    conversion_webhook_service_name: String,
    /// Certificate of the conversion webhooks
    #[arg(
        long,
        env = "CONVERSION_WEBHOOK_SERVER_CERT",
        value_name = "FILE",
        default_value = "/conversion-certs/tls.crt"
    )]
    conversion_webhook_server_cert: PathBuf,
    /// Key of the conversion webhooks
    #[arg(
        long,
        env = "CONVERSION_WEBHOOK_SERVER_KEY",
        value_name = "FILE",
        default_value = "/conversion-certs/tls.key"
    )]
    conversion_webhook_server_key: PathBuf,
    /// Certificate authority of the conversion webhooks
    #[arg(
        long,
        env = "CONVERSION_WEBHOOK_CA",
        value_name = "FILE",
        default_value = "/conversion-certs/ca.crt"
    )]
    conversion_webhook_ca: PathBuf,
    /// Certificate authority that clients of the conversion webhooks need
    #[arg(long, env = "CONVERSION_WEBHOOK_CLIENT_CA", value_name = "FILE", value_delimiter = ',')]
    conversion_webhook_client_ca: Vec<PathBuf>,
    /// Port of the conversion webhooks
    #[arg(long, env = "CONVERSION_WEBHOOK_LISTEN_PORT", value_name = "PORT", default_value = "9681")]
    conversion_webhook_listen_port: u16,
    /// Address of the conversion webhooks
    #[arg(
        long,
        env = "CONVERSION_WEBHOOK_LISTEN_ADDRESS",
        value_name = "ADDRESS",
        default_value = "0.0.0.0",
        value_parser = host
    )]
    conversion_webhook_listen_address: IpAddr,
    /// Make the certificates of the webhooks and keep them in a Secret
    #[arg(long, env = "WEBHOOK_SELF_SIGNED", value_parser = switch)]
    webhook_self_signed: bool,
    /// Host by which the API server reaches the webhooks, for an operator outside the cluster
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
            admission: WebhookServer {
                service: self.validating_webhook_service_name,
                tls: TlsFiles {
                    certificate: self.validating_webhook_server_cert,
                    key: self.validating_webhook_server_key,
                    client_ca: self.validating_webhook_client_ca,
                },
                ca: self.validating_webhook_ca,
                listen: SocketAddr::new(
                    self.validating_webhook_listen_address,
                    self.validating_webhook_listen_port,
                ),
            },
            conversion: WebhookServer {
                service: self.conversion_webhook_service_name,
                tls: TlsFiles {
                    certificate: self.conversion_webhook_server_cert,
                    key: self.conversion_webhook_server_key,
                    client_ca: self.conversion_webhook_client_ca,
                },
                ca: self.conversion_webhook_ca,
                listen: SocketAddr::new(
                    self.conversion_webhook_listen_address,
                    self.conversion_webhook_listen_port,
                ),
            },
            self_signed: self.webhook_self_signed,
            external_host: Some(self.webhook_external_host).filter(|host| !host.is_empty()),
        }
    }
}
