//! The mirror's HTTP server: plain files with ranges, so that a download can be resumed.

use std::path::Path;

use anyhow::{Context, Result};
use tower_http::services::ServeDir;

/// Serves `directory` at `address` until the process is ended.
pub(crate) fn run(directory: &Path, address: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address)
            .await
            .with_context(|| format!("cannot listen on {address}"))?;
        axum::serve(listener, axum::Router::new().fallback_service(ServeDir::new(directory))).await?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Duration;

    fn ask(address: &str, request: &str) -> String {
        let mut stream = (0..100)
            .find_map(|_| {
                std::thread::sleep(Duration::from_millis(20));
                TcpStream::connect(address).ok()
            })
            .expect("the server listens within two seconds");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_part_of_a_file_can_be_had_and_a_missing_one_is_a_404() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("file"), "0123456789").unwrap();
        let address = {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().to_string()
        };
        let (root, listen) = (directory.path().to_owned(), address.clone());
        std::thread::spawn(move || super::run(&root, &listen));
        let part =
            ask(&address, "GET /file HTTP/1.1\r\nHost: lab\r\nRange: bytes=4-\r\nConnection: close\r\n\r\n");
        assert!(part.starts_with("HTTP/1.1 206") && part.ends_with("456789"), "{part}");
        let none = ask(&address, "GET /none HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n");
        assert!(none.starts_with("HTTP/1.1 404"), "{none}");
    }
}
