//! Configure the registry: its user, certificate, passwords, settings and unit.

use std::sync::Arc;

use kk_config::{Credentials, OwnRegistry, RegistryAuth};
use kk_engine::{
    Action, HostWork, Task,
    actions::{Directory, File, User},
};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::{PUSH_UNIT_FILE, SETTINGS, UNIT_FILE, USER, pushes};
use crate::{
    base::{error::BuildError, pki::Pki, slots},
    model::inputs::Inputs,
};

/// Work of bcrypt, as `htpasswd -B` has it: the registry verifies a password at each request.
const COST: u32 = 5;

pub(super) fn task(inputs: &Inputs, own: &OwnRegistry<'_>, pki: &Arc<Pki>) -> Result<Task, BuildError> {
    let owner = format!("{USER}:{USER}");
    let mut actions: Vec<Box<dyn Action>> = vec![
        Box::new(User::new(USER)),
        Box::new(Directory::new(&inputs.spec.registry.registry_data_dir).mode(0o750).owner(&owner)),
    ];
    actions.extend(files(inputs, own, pki)?);
    let work = HostWork::new(actions).needs(slots::registry_certificates_slot());
    Ok(Task::new("configure_registry", "Configure the registry").on(&own.host.name, work))
}

/// The files that it reads at its start.
pub(super) fn files(
    inputs: &Inputs,
    own: &OwnRegistry<'_>,
    pki: &Pki,
) -> Result<Vec<Box<dyn Action>>, BuildError> {
    let owner = format!("{USER}:{USER}");
    let place = |name: &str| format!("{SETTINGS}/{name}");
    let auth = inputs.spec.registry.auths.get(&own.address);
    let credentials = auth.and_then(RegistryAuth::credentials);
    let plain = auth.is_some_and(|auth| auth.plain_http);
    let data = &inputs.spec.registry.registry_data_dir;
    let settings = |template: &str, port: u16| {
        let values = json!({
            "data_dir": json!(data).to_string(),
            "port": port,
            "tls": !plain,
            "auth": credentials.is_some(),
        });
        inputs.templates.render(template, &values)
    };
    let unit = |template: &str, port: u16| {
        inputs.templates.render(template, &json!({"data_dir": data, "low_port": port < 1024}))
    };
    let mut files: Vec<Box<dyn Action>> = vec![
        Box::new(Directory::new(SETTINGS)),
        Box::new(File::text(place("cluster"), format!("{}\n", inputs.spec.name))),
        Box::new(File::text(place("ca.crt"), pki.ca_cert())),
        Box::new(File::text(place("config.yml"), settings("registry/config.yml", own.port)?)),
        Box::new(File::text(UNIT_FILE, unit("registry/registry.service", own.port)?)),
        Box::new(File::text(place("push.yml"), settings("registry/push.yml", own.push_port)?)),
        Box::new(File::text(PUSH_UNIT_FILE, unit("registry/registry-push.service", own.push_port)?)),
    ];
    let server = pki.server();
    files.push(Box::new(File::text(place("tls.crt"), server.cert.clone())));
    files.push(Box::new(File::text(place("tls.key"), server.key.expose()).mode(0o600).owner(&owner)));
    let password = pushes::password(pki);
    let pushing = Credentials { username: pushes::ACCOUNT, password: &password };
    let accounts = credentials.map(|pair| ("htpasswd", pair)).into_iter().chain([("htpasswd-push", pushing)]);
    for (file, pair) in accounts {
        let line = passwords(pair, pki.ca_key().expose());
        files.push(Box::new(File::text(place(file), line).mode(0o600).owner(&owner)));
    }
    Ok(files)
}

/// A line of Apache's `htpasswd`. The salt is made of what nobody else has, so that the same password gives the same file.
fn passwords(pair: Credentials<'_>, secret: &str) -> String {
    let mut sum = Sha256::new();
    for part in [secret, pair.username, pair.password.expose()] {
        sum.update((part.len() as u64).to_be_bytes());
        sum.update(part);
    }
    let salt = sum.finalize()[..16].try_into().expect("a SHA-256 has 32 bytes");
    let hash =
        bcrypt::hash_with_salt(pair.password.expose(), COST, salt).expect("the cost is one of bcrypt's");
    format!("{}:{hash}\n", pair.username)
}

#[cfg(test)]
mod tests {
    use kk_config::Secret;
    use serde_json::Value;

    use super::*;
    use crate::base::templates::Templates;

    #[test]
    fn only_the_process_for_pushes_writes_and_it_knows_no_account_of_hosts() {
        let templates = Templates::new(None).unwrap();
        let settings = |name: &str, tls: bool| -> Value {
            let values = json!({"data_dir": "\"/mnt/registry\"", "port": 1, "tls": tls, "auth": true});
            serde_saphyr::from_str(&templates.render(&format!("registry/{name}"), &values).unwrap()).unwrap()
        };
        let (pull, push) = (settings("config.yml", true), settings("push.yml", true));
        assert_eq!(pull["storage"]["maintenance"]["readonly"]["enabled"], true);
        assert_eq!(pull["storage"]["filesystem"], push["storage"]["filesystem"]);
        assert_eq!(pull["http"]["tls"], push["http"]["tls"]);
        assert_eq!(pull["auth"]["htpasswd"]["path"], "/etc/registry/htpasswd");
        assert_eq!(push["auth"]["htpasswd"]["path"], "/etc/registry/htpasswd-push");
        // With plainHTTP only pulls have no TLS.
        assert!(settings("config.yml", false)["http"]["tls"].is_null());
        assert_eq!(settings("push.yml", false), push);
        let unit = |name: &str| {
            let values = json!({"data_dir": "/mnt/registry", "low_port": false});
            templates.render(&format!("registry/{name}"), &values).unwrap()
        };
        assert!(unit("registry.service").contains("serve /etc/registry/config.yml\n"));
        assert!(unit("registry-push.service").contains("serve /etc/registry/push.yml\n"));
    }

    #[test]
    fn a_password_is_hashed_to_the_same_line_each_time_and_can_be_verified() {
        let password = Secret::new("s3cret".to_owned());
        let line = |secret: &str| passwords(Credentials { username: "team", password: &password }, secret);
        let first = line("key");
        assert_eq!(first, line("key"));
        let (user, hash) = first.trim_end().split_once(':').unwrap();
        assert_eq!(user, "team");
        assert!(bcrypt::verify("s3cret", hash).unwrap() && !bcrypt::verify("other", hash).unwrap());
        assert_ne!(first, line("another key"));
    }
}
