//! D: network and security. D8 is in `woo/faults.rs`.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use axum::{Router, response::Redirect, routing::get};

use crate::support::{TestApp, clients::lines, listen};

/// The same answer for every address that is not asked, and for every way in which asking fails: it tells nothing
/// of the network behind the gateway.
/// Requirements: U-019, U-023.
#[tokio::test]
async fn d9_every_address_that_may_not_be_asked_looks_the_same() {
    let app = TestApp::new().await;
    let followed = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&followed);
    let inside = listen(Router::new().fallback(move || {
        counts.fetch_add(1, Ordering::SeqCst);
        std::future::ready("{}")
    }))
    .await;
    let target = format!("{inside}/latest/meta-data");
    let away = listen(
        Router::new().route("/profile", get(move || std::future::ready(Redirect::temporary(&target)))),
    );
    let away = away.await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut bodies = Vec::new();
    for url in [
        format!("{away}/profile"),
        format!("http://{closed}/profile"),
        "https://[::ffff:10.0.0.1]/".to_owned(),
        "https://[::ffff:a00:1]/".to_owned(),
        "https://10.0.0.1/".to_owned(),
        "https://0x0a000001/".to_owned(),
        "https://167772161/".to_owned(),
        "https://169.254.169.254/latest/meta-data".to_owned(),
        "https://[fe80::1]/".to_owned(),
        "https://[64:ff9b::a9fe:a9fe]/".to_owned(),
        "https://metadata.localhost/".to_owned(),
    ] {
        let refused = app.ucp().profile(&url).create(lines("bouquet_roses", 1)).await.expect(424);
        bodies.push((url, refused.bytes));
    }
    let first = bodies[0].1.clone();
    for (url, body) in &bodies {
        assert_eq!(body, &first, "{url}");
    }
    assert_eq!(followed.load(Ordering::SeqCst), 0, "a redirect was followed");
}
