//! Projects of a Harbor: it accepts images only into existing projects.
//!
//! Its API: goharbor/harbor, `api/v2.0/swagger.yaml`.

use std::collections::BTreeSet;

use reqwest::{StatusCode, header};
use serde_json::json;

use super::push::PushImage;
use super::registries::Registries;
use crate::{Error, client};

/// Creates the projects that these images need and the Harbor lacks, as private projects; returns their names.
///
/// # Errors
/// All projects that cannot be created.
pub(super) async fn make_projects(
    registries: &Registries,
    images: &[PushImage],
) -> Result<Vec<String>, Vec<Error>> {
    let project = |image: &PushImage| {
        let (project, _) = image.target.path.split_once('/')?;
        Some((image.target.registry.clone(), project.to_owned()))
    };
    let wanted: BTreeSet<_> = images.iter().filter_map(project).collect();
    let (mut made, mut errors) = (Vec::new(), Vec::new());
    for (host, project) in wanted {
        match ensure(registries, &host, &project).await {
            Ok(true) => made.push(project),
            Ok(false) => {}
            Err(reason) => {
                errors.push(Error::Registry { host, reason: format!("project {project}: {reason}") });
            }
        }
    }
    if errors.is_empty() { Ok(made) } else { Err(errors) }
}

/// Creates the project if it is missing; returns whether it did.
async fn ensure(registries: &Registries, host: &str, project: &str) -> Result<bool, String> {
    let access = registries.web(host)?;
    let url = format!("{}/api/v2.0/projects", access.base);
    let with_login = |request: reqwest::RequestBuilder| match &access.login {
        Some((user, password)) => request.basic_auth(user, Some(password.expose())),
        None => request,
    };
    let name = project.replace('%', "%25");
    let look = with_login(access.client.head(format!("{url}?project_name={name}"))).send().await;
    match look.map_err(|error| client::reason(&error))?.status() {
        StatusCode::OK => return Ok(false),
        StatusCode::NOT_FOUND => {}
        status => return Err(refused(status)),
    }
    let text = json!({"project_name": project, "metadata": {"public": "false"}}).to_string();
    let make = access.client.post(url).header(header::CONTENT_TYPE, "application/json").body(text);
    match with_login(make).send().await.map_err(|error| client::reason(&error))?.status() {
        StatusCode::CREATED => Ok(true),
        // Another client was faster.
        StatusCode::CONFLICT => Ok(false),
        status => Err(refused(status)),
    }
}

fn refused(status: StatusCode) -> String {
    match status {
        StatusCode::UNAUTHORIZED => "it refuses the user name or the password (401)".to_owned(),
        StatusCode::FORBIDDEN => {
            "the user may not make it (403): make it in Harbor, or name a user who may".to_owned()
        }
        status => format!("it answers {}", status.as_u16()),
    }
}
