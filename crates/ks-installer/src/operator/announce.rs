//! Announces a complete installation to KubeKey, scripts and users: by a file and by the lines of a welcome message.

use std::path::PathBuf;

use serde_json::Value;
use tokio::sync::Mutex;

use super::Print;
use crate::api::{Api, Id};

/// A line of the box.
const LINE: &str = "#####################################################";
/// The middle of the box.
const WELCOME: &str = "###              Welcome to KubeSphere!           ###";

/// Announces that all components are installed.
pub(super) struct Announcer {
    pub(super) print: Print,
    pub(super) file: Option<PathBuf>,
    /// The last message, if it contains the address of the console. While the components stay the same, the address does, too.
    last: Mutex<Option<String>>,
}

impl Announcer {
    pub(super) fn new(print: Print, file: Option<PathBuf>) -> Self {
        Self { print, file, last: Mutex::default() }
    }

    /// Called when all components are installed. Creates a missing file, and prints the message if the installation is new
    /// (`is_new`). `has_changed`: a component has changed since the last message.
    pub(super) async fn complete(&self, api: &Api, is_new: bool, has_changed: bool) {
        let mut last = self.last.lock().await;
        if has_changed {
            *last = None;
        }
        let exists = self.file.as_ref().is_none_or(|file| file.exists());
        if exists && !is_new {
            return;
        }
        let text = if let Some(text) = &*last {
            text.clone()
        } else {
            let console = console(api).await;
            let text = text(console.as_deref());
            // Without the address, the next call queries it again.
            *last = console.map(|_| text.clone());
            text
        };
        if is_new {
            text.lines().for_each(|line| (self.print)(line));
        }
        if let Some(file) = &self.file {
            let made = file.parent().map_or(Ok(()), std::fs::create_dir_all);
            if let Err(error) = made.and_then(|()| std::fs::write(file, text)) {
                (self.print)(&format!("cannot write {}: {error}", file.display()));
            }
        }
    }

    /// Removes the file when a component is not installed (any more).
    pub(super) fn incomplete(&self) {
        if let Some(file) = &self.file {
            // The file may not exist.
            let _ = std::fs::remove_file(file);
        }
    }
}

fn text(console: Option<&str>) -> String {
    let mut lines = vec![LINE.to_owned(), WELCOME.to_owned(), LINE.to_owned(), String::new()];
    if let Some(console) = console {
        lines.push(format!("Console: {console}"));
        lines.push("Account: admin".to_owned());
        // Only users who may read the Secret may know the password. More users can read the log.
        let secret = "kubectl -n kubesphere-system get secret kubesphere-secret -o jsonpath='{.data.initAdminPassword}' | base64 -d";
        lines.push(format!("Password: {secret}"));
        lines.push("Change it after the first login.".to_owned());
    }
    lines.push(LINE.to_owned());
    lines.join("\n") + "\n"
}

/// Address of the console, if there is one.
async fn console(api: &Api) -> Option<String> {
    let service = api.get(&Id::new("v1", "Service", "kubesphere-system", "ks-console")).await.ok()??;
    let port = service["spec"]["ports"][0]["nodePort"].as_i64()?;
    let nodes = api.list(&Id::new("v1", "Node", "", ""), "limit=1").await.ok()?;
    let addresses = nodes.first()?["status"]["addresses"].as_array()?.clone();
    let internal = |address: &&Value| address["type"] == "InternalIP";
    let address = addresses.iter().find(internal)?["address"].as_str()?.to_owned();
    Some(format!("http://{address}:{port}"))
}
