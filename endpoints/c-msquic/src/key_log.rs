//! TLS secrets in the NSS key log format.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use msquic::ffi::QUIC_TLS_SECRETS;
use wirelab_endpoint::program::Refusal;

/// A file that connections append their secrets to.
#[derive(Debug, Clone)]
pub struct KeyLog(Arc<Mutex<File>>);

impl KeyLog {
    /// Opens the file.
    pub fn open(path: &Path) -> Result<Self, Refusal> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|error| Refusal::failed(format!("opening the key log {}: {error}", path.display())))?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    /// Appends the secrets of a connection whose handshake is complete.
    pub fn append(&self, secrets: &QUIC_TLS_SECRETS) {
        let length = usize::from(secrets.SecretLength);
        let client_random = hex(&secrets.ClientRandom);
        let mut lines = String::new();
        for (is_set, label, secret) in [
            (
                secrets.IsSet.ClientEarlyTrafficSecret(),
                "CLIENT_EARLY_TRAFFIC_SECRET",
                &secrets.ClientEarlyTrafficSecret,
            ),
            (
                secrets.IsSet.ClientHandshakeTrafficSecret(),
                "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
                &secrets.ClientHandshakeTrafficSecret,
            ),
            (
                secrets.IsSet.ServerHandshakeTrafficSecret(),
                "SERVER_HANDSHAKE_TRAFFIC_SECRET",
                &secrets.ServerHandshakeTrafficSecret,
            ),
            (secrets.IsSet.ClientTrafficSecret0(), "CLIENT_TRAFFIC_SECRET_0", &secrets.ClientTrafficSecret0),
            (secrets.IsSet.ServerTrafficSecret0(), "SERVER_TRAFFIC_SECRET_0", &secrets.ServerTrafficSecret0),
        ] {
            if is_set != 0 {
                // Writing to a string cannot fail.
                let _ = writeln!(lines, "{label} {client_random} {}", hex(secret.get(..length).unwrap_or(secret)));
            }
        }
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(lines.as_bytes()) {
            eprintln!("writing the key log: {error}");
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
