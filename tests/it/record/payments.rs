//! What payment providers, plugins and WordPress itself put into calls and answers: nothing of it stands in the file.

use axum::{Router, http::Uri, http::header::LOCATION, response::IntoResponse as _};
use serde_json::json;

use super::{API, Bench, assert_absent};

const INTENT: &str = "pi_3MtwBwLkdIwHu7ix28a3tqPa";
const SECRET: &str = "pi_3MtwBwLkdIwHu7ix28a3tqPa_secret_YrKJUKribcBjcG8HVhfZluoGH";
const NONCE: &str = "9f8e7d6c5b";

#[tokio::test]
async fn secrets_of_3ds_forms_reviews_and_extra_fields_are_not_in_the_file() {
    let hash = "https://secure.gravatar.example/avatar/0bc83cb571cd1c50ba6f3e8a78ef1346?s=96";
    let shop = Router::new().fallback(async move |uri: Uri| {
        let confirm = format!("#wc-stripe-confirm-pi:5447:{SECRET}:{NONCE}");
        match uri.path() {
            "/wp-json/wc/store/v1/checkout" => axum::Json(json!({ "order_id": 5447, "status": "pending",
                "order_key": "wc_order_Ps1Ooje5VVg4W", "billing_address": { "country": "DE", "demo/floor": "Zwischendeck" },
                "payment_method": "stripe", "payment_result": { "payment_status": "pending", "redirect_url": confirm,
                    "payment_details": [{ "key": "result", "value": "success" }, { "key": "redirect", "value": confirm },
                        { "key": "intent_id", "value": INTENT }, { "key": "session", "value": "Sitzung77" }] } }))
            .into_response(),
            "/" => axum::Json(json!({ "result": "success", "redirect": confirm })).into_response(),
            "/away" => (
                axum::http::StatusCode::FOUND,
                [(LOCATION, format!("https://hooks.psp.example/authenticate/q7XbA9vLm2?payment_intent_client_secret={SECRET}"))],
            )
                .into_response(),
            _ => axum::Json(json!([{ "id": 1, "reviewer": "Quastenberg", "reviewer_email": "fq@people.example",
                "review": "Bello bellt", "reviewer_avatar_urls": { "24": hash } },
                { "id": 2, "email": "gq@people.example", "username": "schnurrbusch", "avatar_url": hash }]))
            .into_response(),
        }
    });
    let bench = Bench::of(shop).await;
    let checkout = format!("{API}/checkout");
    let body = json!({ "billing_address": { "first_name": "Ann", "country": "DE", "demo/floor": "Zwischendeck",
            "demo/door": "Tapetentuer" }, "payment_method": "stripe", "payment_data": [
            { "key": "wc-stripe-payment-method", "value": "pm_1Q0PsIJvEtkwdCNYMSaVuRz6" }], "gift_for": "Kunigunde" });
    let form = [
        ("payment_method", "stripe"),
        ("payment_data[0][key]", "token"),
        ("payment_data[0][value]", "tok_abc"),
        ("wc-stripe-payment-method", "pm_visa"),
        ("stripe_source", "src_eins"),
        ("billing_address[demo/door]", "Tapetentuer"),
        ("mystery", "Raetsel81"),
    ];
    let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let posted = |path: &str| {
        bench.post(path).header("content-type", "application/x-www-form-urlencoded").body(form.clone())
    };
    for call in [
        bench.post(&checkout).json(&body),
        posted(&checkout),
        posted("/?wc-ajax=checkout"),
        bench.get("/away"),
        bench.get(&format!("/wp-json/x?redirect_status=succeeded&payment_intent={INTENT}&s=1")),
        bench.get("/wp-json/wc/v3/products/reviews?reviewer_email=fq@people.example"),
    ] {
        call.send().await.unwrap().bytes().await.unwrap();
    }
    assert_eq!(bench.ended().await.len(), 6);
    let values = [
        INTENT,
        SECRET,
        "YrKJUKribcBjcG8HVhfZluoGH",
        NONCE,
        "wc_order_Ps1",
        "Zwischendeck",
        "Tapetentuer",
        "Sitzung77",
        "q7XbA9vLm2",
        "Quastenberg",
        "people.example",
        "Bello",
        "0bc83cb571cd1c50ba6f3e8a78ef1346",
        "schnurrbusch",
        "pm_1Q0PsIJvEtkwdCNYMSaVuRz6",
        "Kunigunde",
        "tok_abc",
        "pm_visa",
        "src_eins",
        "Raetsel81",
    ];
    assert_absent(&bench.out, &values, &["Ann"]);
    let all = std::fs::read_to_string(&bench.out).unwrap();
    for kept in ["#wc-stripe-confirm-pi:5447:secret-", "payment_method=stripe", "redirect_status=succeeded"] {
        assert!(all.contains(kept), "{kept}");
    }
}
