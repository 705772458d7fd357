//! The examples of the RFC, matching, what is refused, and that the two are each other's reverse.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn template(text: &str) -> UriTemplate {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn object(value: serde_json::Value) -> JsonObject {
    value.as_object().cloned().unwrap()
}

fn matched(text: &str, uri: &str) -> Option<serde_json::Value> {
    template(text).match_uri(uri).map(serde_json::Value::Object)
}

#[test]
fn the_examples_of_the_rfc_are_expanded() {
    let values = object(json!({
        "count": ["one", "two", "three"], "dom": ["example", "com"], "dub": "me/too", "hello": "Hello World!",
        "half": "50%", "var": "value", "who": "fred", "base": "http://example.com/home/", "path": "/foo/bar",
        "list": ["red", "green", "blue"], "keys": {"semi": ";", "dot": ".", "comma": ","}, "v": "6", "x": "1024",
        "y": "768", "empty": "", "empty_keys": {}, "undef": null,
    }));
    let examples = [
        ("{count}", "one,two,three"),
        ("{count*}", "one,two,three"),
        ("{/count}", "/one,two,three"),
        ("{/count*}", "/one/two/three"),
        ("{;count}", ";count=one,two,three"),
        ("{;count*}", ";count=one;count=two;count=three"),
        ("{?count}", "?count=one,two,three"),
        ("{?count*}", "?count=one&count=two&count=three"),
        ("{&count*}", "&count=one&count=two&count=three"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("O{empty}X", "OX"),
        ("O{undef}X", "OX"),
        ("{x,empty}", "1024,"),
        ("?{x,undef}", "?1024"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{keys}", "semi,%3B,dot,.,comma,%2C"),
        ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
        ("{+half}", "50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
        ("{+path:6}/here", "/foo/b/here"),
        ("{+keys*}", "semi=;,dot=.,comma=,"),
        ("{#x,hello,y}", "#1024,Hello%20World!,768"),
        ("foo{#empty}", "foo#"),
        ("{#keys}", "#semi,;,dot,.,comma,,"),
        ("www{.dom*}", "www.example.com"),
        ("X{.empty}", "X."),
        ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
        ("X{.empty_keys}", "X"),
        ("{/var,empty}", "/value/"),
        ("{/var,undef}", "/value"),
        ("{/var:1,var}", "/v/value"),
        ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
        ("{;v,empty,who}", ";v=6;empty;who=fred"),
        ("{;hello:5}", ";hello=Hello"),
        ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
        ("{?x,y,empty}", "?x=1024&y=768&empty="),
        ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    ];
    for (text, expanded) in examples {
        assert_eq!(template(text).expand(&values), expanded, "{text}");
    }
}

#[test]
fn invalid_templates_are_refused_with_the_position() {
    for (text, reason) in [
        ("a{b", "a brace that is not closed at character 2"),
        ("a}b", "a character that cannot be part of a URI at character 2"),
        ("a b", "a character that cannot be part of a URI at character 2"),
        ("ü{}", "a variable whose name is not letters, digits and underscores at character 3"),
        ("{a,}", "a variable whose name is not letters, digits and underscores at character 2"),
        ("{a:0}", "a prefix length (as in `{name:3}`) that is not a number from 1 to 9999 at character 2"),
        ("{a:+1}", "a prefix length (as in `{name:3}`) that is not a number from 1 to 9999 at character 2"),
        ("{!a}", "a reserved operator at character 2"),
    ] {
        assert_eq!(text.parse::<UriTemplate>().unwrap_err().to_string(), reason, "{text}");
    }
}

#[test]
fn the_variables_are_named_in_order() {
    let template = template("x://{a}/{+b.c,d:3}{?e*}");
    assert_eq!(template.variables().collect::<Vec<_>>(), ["a", "b.c", "d", "e"]);
}

#[test]
fn values_are_found_and_decoded() {
    assert_eq!(matched("weather://{city}/now", "weather://Ulm/now"), Some(json!({"city": "Ulm"})));
    assert_eq!(matched("n://{a}", "n://J%C3%BCrg%27s%20file"), Some(json!({"a": "Jürg's file"})));
    assert_eq!(matched("n://{a}", "n://user@host:80"), Some(json!({"a": "user@host:80"})));
    assert_eq!(matched("file:///{+path}", "file:///a/b.txt"), Some(json!({"path": "a/b.txt"})));
    assert_eq!(matched("file://{+path}", "file:///a/b.txt"), Some(json!({"path": "/a/b.txt"})));
    assert_eq!(matched("x:{a,b}", "x:1,2"), Some(json!({"a": "1", "b": "2"})));
    assert_eq!(matched("x:a{.ext}", "x:a.txt"), Some(json!({"ext": "txt"})));
    assert_eq!(matched("x:a{/b,c}", "x:a/1/2"), Some(json!({"b": "1", "c": "2"})));
    assert_eq!(matched("x:a{/b*}/end", "x:a/1/2/end"), Some(json!({"b": ["1", "2"]})));
    assert_eq!(matched("x:a{;b,c}/d", "x:a;b=1;c/d"), Some(json!({"b": "1", "c": ""})));
    assert_eq!(matched("x:a{#f}", "x:a#top/1"), Some(json!({"f": "top/1"})));
    assert_eq!(matched("x:{id:3}/{rest}", "x:abc/def"), Some(json!({"id": "abc", "rest": "def"})));
    assert_eq!(matched("x:{id:3}", "x:%C3%A4%C3%B6%C3%BC"), Some(json!({"id": "äöü"})));
    assert_eq!(matched("x:{id:3}", "x:abcd"), None);
}

#[test]
fn a_query_may_come_in_any_order_and_in_part() {
    let text = "x:s{?q,limit}";
    assert_eq!(matched(text, "x:s?q=a%20b&limit=3"), Some(json!({"q": "a b", "limit": "3"})));
    assert_eq!(matched(text, "x:s?limit=3&q="), Some(json!({"limit": "3", "q": ""})));
    assert_eq!(matched(text, "x:s"), Some(json!({})));
    assert_eq!(matched(text, "x:s?other=1"), None);
    assert_eq!(matched(text, "x:s?q=1&q=2"), None);
    assert_eq!(matched("x:s{?q*}", "x:s?q=1&q=2"), Some(json!({"q": ["1", "2"]})));
    assert_eq!(matched("x:{+path}{?q}", "x:a/b?q=1"), Some(json!({"path": "a/b", "q": "1"})));
    assert_eq!(matched("x:s?v=1{&q}", "x:s?v=1&q=YQ=="), Some(json!({"q": "YQ=="})));
}

#[test]
fn literal_text_of_the_template_has_to_match() {
    assert_eq!(matched("weather://{city}/now", "weather:///now"), None);
    assert_eq!(matched("weather://{city}/now", "weather://Ulm/then"), None);
    assert_eq!(matched("weather://{city}/now", "weather://a/b/now"), None);
    assert_eq!(matched("x:{a}/{a}", "x:1/2"), None);
    assert_eq!(matched("x:{a}/{a}", "x:1/1"), Some(json!({"a": "1"})));
    assert_eq!(matched("x:{a}", "x:%zz"), None);
    assert_eq!(matched("x:{a}", "x:%ff"), None);
}

#[test]
fn a_value_cannot_escape_its_path_segment() {
    for uri in
        ["f:///../x", "f:///a/../../x", "f:///..", "f:///%2e%2e/x", "f:///a%2F..%2Fb", "f:///a%5C..%5Cb", "f:////etc"]
    {
        assert_eq!(matched("f:///{+path}", uri), None, "{uri}");
    }
    for uri in ["f:///..", "f:///%2e.", "f:///a%2Fb", "f:///a%5cb", "f:///a%00", "f:///%2Fetc"] {
        assert_eq!(matched("f:///{name}", uri), None, "{uri}");
        assert_eq!(matched("f://{/name*}", uri), None, "{uri}");
    }
    assert_eq!(matched("f:///{+path}", "f:///a..b/..c/d.."), Some(json!({"path": "a..b/..c/d.."})));
    assert_eq!(matched("f:{?path}", "f:?path=a%2Fb"), Some(json!({"path": "a/b"})));
    assert_eq!(matched("f:{?path}", "f:?path=..%2Fb"), None);
}

#[test]
fn a_long_uri_takes_no_long_time() {
    let text = "x:{a}{b}{c}{d}{e}{f}{g}{h}{+i}{+j}!";
    assert_eq!(matched(text, &format!("x:{}", "a".repeat(8_000))), None);
    assert_eq!(matched("x:{a}", &format!("x:{}", "a".repeat(9_000))), None);
}

/// Text that a handler may get: nothing that leads out of its place.
fn safe_text() -> impl Strategy<Value = String> {
    "\\PC{1,8}".prop_filter("it has to be safe", |text| text != ".." && !text.contains(['/', '\\']))
}

proptest! {
    #[test]
    fn an_expanded_uri_matches_with_the_same_values(
        a in safe_text(), b in safe_text(), c in safe_text(), q in "\\PC{0,8}", list in prop::collection::vec(safe_text(), 1..4),
    ) {
        prop_assume!(!q.split(['/', '\\']).any(|segment| segment == ".."));
        let values = object(json!({"a": a, "b": b, "c": c, "q": q, "list": list}));
        let template = template("x://{a}/{b,c}/y{/list*}{?q}");
        let uri = template.expand(&values);
        prop_assert_eq!(template.match_uri(&uri), Some(values), "{}", uri);
    }

    #[test]
    fn a_reserved_value_comes_back_too(path in "[a-z0-9/.:@é ü-]{1,20}", page in "[0-9]{1,3}") {
        prop_assume!(!path.starts_with('/') && !path.split('/').any(|segment| segment == ".."));
        let values = object(json!({"path": path, "page": page}));
        let template = template("file:///{+path}{;page}");
        let uri = template.expand(&values);
        prop_assert_eq!(template.match_uri(&uri), Some(values), "{}", uri);
    }

    #[test]
    fn matched_values_are_always_safe(uri in "x:///[a-z.%2fFeE0\\\\/]{0,24}") {
        for text in ["x:///{a}", "x:///{+a}", "x://{/a*}", "x:///{a}{/b}", "x:///{a}{.b}", "{+a}"] {
            let values = template(text).match_uri(&uri).unwrap_or_default();
            let texts = values.values().flat_map(|value| match value {
                serde_json::Value::Array(items) => items.clone(),
                one => vec![one.clone()],
            });
            for value in texts {
                let value = value.as_str().unwrap().to_owned();
                prop_assert!(!value.split(['/', '\\']).any(|segment| segment == ".."), "{} {}", text, value);
                prop_assert!(!value.contains('\0'));
            }
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,20}", uri in "\\PC{0,40}") {
        if let Ok(template) = text.parse::<UriTemplate>() {
            let _ = template.match_uri(&uri);
            let _ = template.expand(&JsonObject::new());
        }
    }
}
