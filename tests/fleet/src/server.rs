//! The SSH side of the simulated hosts: a listener for each host, a handler for each connection.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use russh::{
    Channel, ChannelId,
    keys::{Algorithm, PrivateKey},
    server::{Auth, ChannelOpenHandle, Config, Handler, Msg, Session, run_stream},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

use super::{exchange, host::Host};

/// What all servers have in common. One key for all: hosts are told apart by their addresses.
pub(super) fn config() -> Result<Arc<Config>> {
    let key =
        PrivateKey::random(&mut russh::keys::key::safe_rng(), Algorithm::Ed25519).context("no host key")?;
    Ok(Arc::new(Config {
        keys: vec![key],
        auth_rejection_time: Duration::ZERO,
        nodelay: true,
        inactivity_timeout: None,
        ..Config::default()
    }))
}

/// Serves one host for ever.
pub(super) async fn serve(
    listener: TcpListener,
    config: Arc<Config>,
    host: Arc<Mutex<Host>>,
    latency: Duration,
) {
    while let Ok((stream, _)) = listener.accept().await {
        let (config, host) = (Arc::clone(&config), Arc::clone(&host));
        tokio::spawn(async move {
            // Small packets leave at once; without it everything only takes longer.
            let _ = stream.set_nodelay(true);
            let handler = Connection { host, inputs: HashMap::new() };
            if let Ok(session) = run_stream(config, delayed(stream, latency), handler).await {
                // However it ends: the client's side is what is measured.
                let _ = session.await;
            }
        });
    }
}

/// What the client sends arrives `latency` later, so that each round trip takes so long.
fn delayed(stream: TcpStream, latency: Duration) -> DuplexStream {
    let (near, far) = tokio::io::duplex(256 << 10);
    let (mut from_client, mut to_client) = stream.into_split();
    let (mut from_server, mut to_server) = tokio::io::split(far);
    let (sender, mut arrived) = mpsc::channel::<(Instant, Vec<u8>)>(64);
    tokio::spawn(async move {
        let mut buffer = vec![0; 32 << 10];
        while let Ok(n @ 1..) = from_client.read(&mut buffer).await {
            if sender.send((Instant::now() + latency, buffer[..n].to_vec())).await.is_err() {
                break;
            }
        }
    });
    tokio::spawn(async move {
        while let Some((due, bytes)) = arrived.recv().await {
            tokio::time::sleep_until(due.into()).await;
            if to_server.write_all(&bytes).await.is_err() {
                break;
            }
        }
        let _ = to_server.shutdown().await;
    });
    tokio::spawn(async move {
        // Ends with either side.
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    });
    near
}

struct Connection {
    host: Arc<Mutex<Host>>,
    /// The standard inputs of commands that run.
    inputs: HashMap<ChannelId, mpsc::UnboundedSender<Vec<u8>>>,
}

impl Handler for Connection {
    type Error = russh::Error;

    async fn auth_password(&mut self, _user: &str, _password: &str) -> Result<Auth, Self::Error> {
        Ok(Auth::Accept)
    }

    async fn channel_open_session(
        &mut self,
        _channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        reply.accept().await;
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        _command: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)?;
        let (sender, input) = mpsc::unbounded_channel();
        self.inputs.insert(channel, sender);
        tokio::spawn(exchange::run(Arc::clone(&self.host), input, session.handle(), channel));
        Ok(())
    }

    async fn data(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        if let Some(input) = self.inputs.get(&channel) {
            // A command that has ended reads no more.
            let _ = input.send(data.to_vec());
        }
        Ok(())
    }

    async fn channel_eof(&mut self, channel: ChannelId, _session: &mut Session) -> Result<(), Self::Error> {
        self.inputs.remove(&channel);
        Ok(())
    }

    async fn channel_close(&mut self, channel: ChannelId, _session: &mut Session) -> Result<(), Self::Error> {
        self.inputs.remove(&channel);
        Ok(())
    }
}
