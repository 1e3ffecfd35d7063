//! Verification of TLS certificates.

use urr_testkit::{free_port, until, within};

use super::{LIMIT, count, kv, patient, server::Server};
use crate::{Error, KvConfig};

const KEY: &[&str] = &["test:{tls}"];

#[tokio::test]
async fn only_trusted_certificates_are_accepted() {
    within(LIMIT, async {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        std::fs::write(&certificate, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
        let port = free_port();
        let Some(_server) = Server::prepare(&[
            "--tls-port",
            &port.to_string(),
            "--tls-cert-file",
            certificate,
            "--tls-key-file",
            key,
            "--tls-ca-cert-file",
            certificate,
            "--tls-auth-clients",
            "no",
        ]) else {
            return;
        };

        let url = format!("rediss://127.0.0.1:{port}");
        let ca_pem = Some(made.cert.pem().into_bytes());
        let trusting = kv(&patient(KvConfig { ca_pem, ..KvConfig::single(url.clone()) }));
        until(LIMIT, async || count(&trusting, KEY).await.is_ok()).await;

        let wary = kv(&patient(KvConfig::single(url)));
        let error = count(&wary, KEY).await.unwrap_err();
        assert!(matches!(&error, Error::Down(why) if why.contains("certificate")), "{error:?}");
    })
    .await;
}
