//! Reads the checksum that upstream publishes next to a binary.

use futures::StreamExt as _;
use reqwest::{Client, Response};

use super::download::Tries;
use super::{ProgressState, Retry};
use crate::client::{self, Failure};
use crate::{Address, Error, Sha256Sum};

/// In bytes. The list of a whole release fits; a wrong answer of a server may be endless.
const LONGEST: usize = 64 * 1024;

/// Reads the checksum of `file` from `address`.
pub(super) async fn sum(
    client: &Client,
    address: &Address,
    file: &str,
    retry: Retry,
    report: &impl Fn(ProgressState),
) -> Result<Sha256Sum, Error> {
    let mut tries = Tries::new(retry);
    let text = loop {
        let answer = async {
            let response = client::send(client.get(address.url()), address).await?;
            read(response, address).await
        };
        match answer.await {
            Ok(text) => break text,
            Err(failure) => tries.after(failure, address, report).await?,
        }
    };
    let text = std::str::from_utf8(&text).ok().filter(|text| text.len() <= LONGEST);
    text.and_then(|text| listed(text, file)).ok_or_else(|| Error::NotASum { address: address.clone() })
}

/// The body, up to slightly more than [`LONGEST`].
async fn read(response: Response, address: &Address) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    let mut body = response.bytes_stream();
    while let Some(bytes) = body.next().await {
        text.extend_from_slice(&bytes.map_err(|e| client::failure(&e, address))?);
        if text.len() > LONGEST {
            break;
        }
    }
    Ok(text)
}

/// The checksum of `file` in a text: only digits, output of `sha256sum` (`digits  name`, `digits *name`), or a list of such
/// lines. A single line always counts for `file`, whatever name it contains.
fn listed(text: &str, file: &str) -> Option<Sha256Sum> {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let line = match lines[..] {
        [only] => only,
        _ => lines.into_iter().find(|line| name(line) == Some(file))?,
    };
    line.split_whitespace().next()?.parse().ok()
}

/// The name of the file in a line of `sha256sum`, without its directory.
fn name(line: &str) -> Option<&str> {
    line.split_whitespace().nth(1)?.trim_start_matches('*').rsplit('/').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_sum_of_the_file_in_every_usual_form() {
        let (own, other) = ("a1".repeat(32), "b2".repeat(32));
        for text in [
            own.clone(),
            format!("{own}\n"),
            format!("{}\r\n", own.to_uppercase()),
            format!("{own}  kubeadm\n"),
            format!("{own}  -\n"),
            format!("{other}  kubelet\n{own}  kubeadm\n"),
            format!("\n{other} *bin/kubelet\n{other}  kubeadm.exe\n{own} *./bin/kubeadm\n"),
        ] {
            assert_eq!(listed(&text, "kubeadm").as_ref().map(Sha256Sum::as_str), Some(&own[..]), "{text}");
        }
        for text in [
            String::new(),
            "<html>not here</html>".to_owned(),
            own[1..].to_owned(),
            format!("{other}\n{own}\n"),
            format!("{other}  kubelet\n{other}  kubectl\n"),
            format!("{other}  kubelet\nabc  kubeadm\n"),
        ] {
            assert_eq!(listed(&text, "kubeadm"), None, "{text}");
        }
    }
}
