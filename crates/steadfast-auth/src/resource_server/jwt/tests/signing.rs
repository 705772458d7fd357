use super::*;

fn set(keys: &[&Value]) -> KeySet {
    KeySet::from_json(&document(keys)).unwrap()
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

#[tokio::test]
async fn a_token_that_the_issuer_signed_is_good() {
    let signer = Signer::es256("one");
    let principal = verified(&verifier(set(&[&signer.public])), &signer.sign(&claims())).await.unwrap();
    assert_eq!(principal.subject(), Some("alice"));
    assert_eq!(principal.scopes().to_string(), "read");
}

#[tokio::test]
async fn a_token_that_names_no_key_is_checked_with_those_that_fit() {
    let (signer, other) = (Signer::es256("one"), Signer::es256("two"));
    let mut header = signer.header();
    header.kid = None;
    let token = signer.sign_with(&header, &claims());
    assert!(verified(&verifier(set(&[&other.public, &signer.public])), &token).await.is_ok());
    assert!(verified(&verifier(set(&[&other.public])), &token).await.is_err());
}

#[tokio::test]
async fn rsa_tokens_are_good_too_unless_they_are_not_allowed() {
    let signer = Signer::rs256("rsa");
    let token = signer.sign(&claims());
    assert!(verified(&verifier(set(&[&signer.public])), &token).await.is_ok());
    let only_ec = verifier(set(&[&signer.public])).algorithms([Algorithm::Es256]);
    assert!(
        matches!(verified(&only_ec, &token).await, Err(TokenRejection::Invalid(reason)) if reason.contains("algorithm"))
    );
}

#[tokio::test]
async fn another_key_of_the_same_name_does_not_make_good_tokens() {
    let (signer, forger) = (Signer::es256("one"), Signer::es256("one"));
    let found = verified(&verifier(set(&[&signer.public])), &forger.sign(&claims())).await;
    assert_eq!(found, Err(TokenRejection::Invalid("the signature of the token is wrong")));
}

#[tokio::test]
async fn changed_claims_are_noticed() {
    let signer = Signer::es256("one");
    let token = signer.sign(&claims());
    let (header, rest) = token.split_once('.').unwrap();
    let signature = rest.split_once('.').unwrap().1;
    let mut changed = claims();
    changed["sub"] = json!("root");
    let forged = format!("{header}.{}.{signature}", encoded(&changed));
    assert!(verified(&verifier(set(&[&signer.public])), &forged).await.is_err());
}

#[tokio::test]
async fn a_token_without_a_signature_is_refused() {
    let signer = Signer::es256("one");
    for algorithm in ["none", "None", "NONE", ""] {
        let header = encoded(&json!({ "alg": algorithm, "kid": "one" }));
        let token = format!("{header}.{}.", encoded(&claims()));
        assert!(verified(&verifier(set(&[&signer.public])), &token).await.is_err(), "{algorithm}");
    }
}

/// The public key is public: if it were accepted as an HMAC secret, anyone could issue tokens.
#[tokio::test]
async fn a_public_key_is_not_a_shared_secret() {
    let signer = Signer::es256("one");
    let x = URL_SAFE_NO_PAD.decode(signer.public["x"].as_str().unwrap()).unwrap();
    for secret in [x, serde_json::to_vec(&signer.public).unwrap()] {
        let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
        header.kid = Some("one".to_owned());
        let token = jsonwebtoken::encode(&header, &claims(), &EncodingKey::from_secret(&secret)).unwrap();
        assert!(verified(&verifier(set(&[&signer.public])), &token).await.is_err());
    }
}

#[tokio::test]
async fn a_shared_secret_in_the_set_is_left_out() {
    let secret = json!({ "kty": "oct", "kid": "one", "k": URL_SAFE_NO_PAD.encode("secret"), "alg": "HS256" });
    assert!(set(&[&secret]).is_empty());
}

#[tokio::test]
async fn keys_for_something_else_are_not_used() {
    let signer = Signer::es256("one");
    for (name, value) in [
        ("use", json!("enc")),
        ("key_ops", json!(["encrypt"])),
        ("alg", json!("ES384")),
        ("crv", json!("P-384")),
        ("kty", json!("OKP")),
    ] {
        let mut public = signer.public.clone();
        public[name] = value;
        assert!(verified(&verifier(set(&[&public])), &signer.sign(&claims())).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_known_of_does_not_spoil_the_others() {
    let signer = Signer::es256("one");
    let strange = [json!({ "kty": "EC", "crv": "secp256k1" }), json!(7), json!({ "kty": "AKP", "pub": "x" })];
    let keys = set(&[&strange[0], &strange[1], &strange[2], &signer.public]);
    assert!(verified(&verifier(keys), &signer.sign(&claims())).await.is_ok());
}

#[tokio::test]
async fn a_short_rsa_key_is_left_out() {
    let public = json!({ "kty": "RSA", "n": URL_SAFE_NO_PAD.encode([0xff; 128]), "e": "AQAB" });
    assert!(set(&[&public]).is_empty());
}

#[tokio::test]
async fn something_else_that_the_issuer_signed_is_no_access_token() {
    let signer = Signer::es256("one");
    let verifier = verifier(set(&[&signer.public]));
    for (typ, good) in [("at+jwt", true), ("application/AT+JWT", true), ("JWT", true), ("logout+jwt", false)] {
        let mut header = signer.header();
        header.typ = Some(typ.to_owned());
        assert_eq!(verified(&verifier, &signer.sign_with(&header, &claims())).await.is_ok(), good, "{typ}");
    }
}

#[tokio::test]
async fn critical_extensions_are_refused() {
    let signer = Signer::es256("one");
    let mut header = signer.header();
    header.crit = Some(vec!["exp".to_owned()]);
    assert!(verified(&verifier(set(&[&signer.public])), &signer.sign_with(&header, &claims())).await.is_err());
}

#[tokio::test]
async fn wrong_audience_and_expiry_are_told_apart() {
    let signer = Signer::es256("one");
    let verifier = verifier(set(&[&signer.public]));
    let with = |name: &str, value: Value| {
        let mut claims = claims();
        claims[name] = value;
        signer.sign(&claims)
    };
    assert_eq!(
        verified(&verifier, &with("aud", json!("https://other.example"))).await,
        Err(TokenRejection::WrongAudience)
    );
    assert_eq!(verified(&verifier, &with("exp", json!(NOW - 31))).await, Err(TokenRejection::Expired));
    let renamed = verifier.allow_audience("https://other.example").leeway(Duration::from_secs(60));
    assert!(verified(&renamed, &with("aud", json!("https://other.example"))).await.is_ok());
    assert!(verified(&renamed, &with("exp", json!(NOW - 31))).await.is_ok());
}

#[tokio::test]
async fn garbage_is_refused() {
    let signer = Signer::es256("one");
    let verifier = verifier(set(&[&signer.public]));
    let header = encoded(&json!({ "alg": "ES256", "kid": "one" }));
    for token in ["a", "a.b", "...", "a.b.c", "a.b.c.d", &format!("{header}.."), &format!("{header}.e30.AAAA")] {
        assert!(matches!(verified(&verifier, token).await, Err(TokenRejection::Invalid(_))), "{token}");
    }
}
