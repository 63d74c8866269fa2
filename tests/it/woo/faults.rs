//! Known faults at the shop's client alone (rows of `known_faults`).

use std::sync::{Arc, Mutex};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;

#[tokio::test]
async fn b2_the_newest_token_is_the_one_that_is_sent() {
    let newer = format!("{}x", token());
    let newest = format!("{}y", token());
    let says = [&newer, &newest, &newest].map(|token| Say::new(200, cart_body()).header("Cart-Token", token));
    let (stub, base) = Stub::start(says).await;
    let store = store(&base);
    let mut known = cart();
    for token in [&newer, &newest, &newest] {
        known.view = store.read(&known).await.unwrap();
        assert_eq!(&known.view.handle.token, token);
    }
    let sent: Vec<_> = stub.asked().iter().map(|asked| asked.headers["Cart-Token"].clone()).collect();
    assert_eq!(sent, [token(), newer, newest]);
}

/// A request that came in: on which connection, and its first line.
type Came = Arc<Mutex<Vec<(usize, String)>>>;

/// A shop that answers the first request of a connection, keeps the connection, and reads the second one to its
/// end before it hangs up.
async fn hangs_up_on_the_second(answer: String) -> (Url, Came) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = url_of(listener.local_addr().unwrap());
    let came = Came::default();
    let seen = Arc::clone(&came);
    tokio::spawn(async move {
        for connection in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (answer, seen) = (answer.clone(), Arc::clone(&seen));
            tokio::spawn(async move {
                for turn in 0..2 {
                    let Some(line) = request(&mut stream).await else { return };
                    seen.lock().unwrap().push((connection, line));
                    if turn == 0 {
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                }
            });
        }
    });
    (base, came)
}

/// Reads one request; its first line.
async fn request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return head.lines().next().map(str::to_owned);
            }
        }
        let mut buffer = [0_u8; 4096];
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

fn kept_answer() -> String {
    let body = cart_body();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCart-Token: {}\r\nContent-Length: {}\r\n\r\n{body}",
        token(),
        body.len()
    )
}

#[tokio::test]
async fn d8_a_write_on_a_connection_that_breaks_is_not_sent_again() {
    let (base, came) = hangs_up_on_the_second(kept_answer()).await;
    let store = store(&base);
    let cart = cart();
    store.read(&cart).await.unwrap();
    let error = store.change(&cart, &cart.plan).await.unwrap_err();
    assert!(matches!(error, Error::Broken(_)) && error.effect() == Effect::Unknown, "{error:?}");
    let came = came.lock().unwrap().clone();
    assert_eq!(came.iter().map(|(connection, _)| *connection).collect::<Vec<_>>(), [0, 0], "{came:?}");
}

#[tokio::test]
async fn d8_an_order_never_goes_over_a_connection_that_was_idle() {
    let (base, came) = hangs_up_on_the_second(kept_answer()).await;
    let store = store(&base);
    let cart = cart();
    store.read(&cart).await.unwrap();
    // What is answered is no order; only the way there counts.
    let _ = store.place(&cart, &order("tok_ok", "corr_1", 0)).await;
    let _ = store.place(&cart, &order("tok_ok", "corr_1", 0)).await;
    let orders: Vec<usize> = came
        .lock()
        .unwrap()
        .iter()
        .filter(|(_, line)| line.starts_with("POST") && line.contains("/checkout"))
        .map(|(connection, _)| *connection)
        .collect();
    assert_eq!(orders, [1, 2], "each over a connection of its own");
}
