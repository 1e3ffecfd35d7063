//! TLS to the server. The server's certificate and host name are always verified.

use std::{path::Path, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresConfig;
use crate::Error;

/// The TLS connector; used when `sslmode` requires TLS.
pub(super) fn connector(config: &PostgresConfig) -> Result<MakeRustlsConnect, Error> {
    let roots = match &config.ca_file {
        Some(file) => from_file(file)?,
        None => from_machine(),
    };
    // Explicit, because the process-wide default depends on which other crates are linked.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::bug("TLS could not be set up").because(e))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(tls))
}

fn from_file(file: &Path) -> Result<RootCertStore, Error> {
    let failed = || format!("{} is not a list of PEM certificates", file.display());
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|e| Error::bug(failed()).because(e))? {
        let certificate = certificate.map_err(|e| Error::bug(failed()).because(e))?;
        roots.add(certificate).map_err(|e| Error::bug(failed()).because(e))?;
    }
    if roots.is_empty() { Err(Error::bug(failed())) } else { Ok(roots) }
}

/// The system's CA certificates. May be empty: a server without TLS still works then.
fn from_machine() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ca_file_without_certificates_is_rejected_with_its_path() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = PostgresConfig {
            ca_file: Some(file.path().to_owned()),
            ..PostgresConfig::new("postgres://u@h/d")
        };
        let error = connector(&config).err().unwrap();
        assert!(error.to_string().contains(&file.path().display().to_string()));
    }
}
