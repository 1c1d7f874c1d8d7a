//! URLs and forms: parsing, the parts of a URL, serialization.

use url::{Url, quirks};

/// A URL, against a base if there is one.
pub fn parse(text: &str, base: Option<&str>) -> Option<Url> {
    match base {
        Some(base) => Url::parse(base).and_then(|base| base.join(text)).ok(),
        None => Url::parse(text).ok(),
    }
}

/// Sets one part of a URL by the rules of its setter; a value that is not allowed changes nothing.
pub fn set_part(url: &mut Url, part: &str, value: &str) {
    let _ = match part {
        "protocol" => quirks::set_protocol(url, value),
        "username" => quirks::set_username(url, value),
        "password" => quirks::set_password(url, value),
        "host" => quirks::set_host(url, value),
        "hostname" => quirks::set_hostname(url, value),
        "port" => quirks::set_port(url, value),
        "pathname" => {
            quirks::set_pathname(url, value);
            Ok(())
        }
        "search" => {
            quirks::set_search(url, value);
            Ok(())
        }
        "hash" => {
            quirks::set_hash(url, value);
            Ok(())
        }
        _ => Err(()),
    };
}

/// The value that the getter of a part returns; empty for an unknown one.
pub fn part(url: &Url, part: &str) -> String {
    match part {
        "href" => url.as_str(),
        "protocol" => quirks::protocol(url),
        "username" => quirks::username(url),
        "password" => quirks::password(url),
        "host" => quirks::host(url),
        "hostname" => quirks::hostname(url),
        "port" => quirks::port(url),
        "pathname" => quirks::pathname(url),
        "search" => quirks::search(url),
        "hash" => quirks::hash(url),
        "origin" => return origin(url),
        _ => "",
    }
    .to_owned()
}

fn origin(url: &Url) -> String {
    match url.scheme() {
        "http" | "https" | "ws" | "wss" | "ftp" => quirks::origin(url),
        "blob" => match Url::parse(url.path()) {
            Ok(inner) if matches!(inner.scheme(), "http" | "https") => quirks::origin(&inner),
            _ => "null".to_owned(),
        },
        _ => "null".to_owned(),
    }
}

/// Names and values of `application/x-www-form-urlencoded`.
pub fn read_form(text: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(text.as_bytes()).into_owned().collect()
}

/// The text of names and values.
pub fn write_form<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

#[cfg(test)]
mod tests {
    use super::{parse, part, set_part};

    #[test]
    fn parts_are_those_of_the_serialized_url() {
        let mut url = parse("../b?q=1#f", Some("https://u:p@ex.org:8443/x/y")).expect("a URL");
        let shown =
            |url: &_| ["href", "origin", "username", "host", "search", "none"].map(|name| part(url, name));
        assert_eq!(
            shown(&url),
            ["https://u:p@ex.org:8443/b?q=1#f", "https://ex.org:8443", "u", "ex.org:8443", "?q=1", ""]
        );
        set_part(&mut url, "port", "none");
        set_part(&mut url, "hostname", "[::1]");
        assert_eq!(part(&url, "href"), "https://u:p@[::1]:8443/b?q=1#f");
        let origin = |text: &str| part(&parse(text, None).expect("a URL"), "origin");
        assert_eq!(origin("blob:https://a.b/c"), "https://a.b");
        assert_eq!(origin("blob:ftp://a.b/c"), "null");
        assert_eq!(origin("file:///x"), "null");
        assert!(parse("nope", None).is_none() && parse("x", Some("mailto:a")).is_none());
    }
}
