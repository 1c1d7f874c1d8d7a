//! Packages: the choice of the library's file, and refused packages.

use super::package::Package;
use super::{LibraryPackages, base64, check, split};
use flate2::Compression;
use flate2::write::GzEncoder;

fn package(manifest: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut add = |path: &str, content: &str| {
        let mut header = tar::Header::new_gnu();
        // Names are written unchecked, as in a hostile archive.
        header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(content.len() as u64);
        header.set_entry_type(tar::EntryType::Regular);
        header.set_cksum();
        archive.append(&header, content.as_bytes()).unwrap();
    };
    add("package/package.json", manifest);
    for (path, content) in files {
        add(path, content);
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn chosen(manifest: &str, entry: Option<&str>) -> Result<String, String> {
    let files = [
        ("package/index.js", "index"),
        ("package/main.cjs", "main"),
        ("package/dist/x.min.js", "browser"),
        ("package/../../evil.js", "evil"),
        ("package/README.md", "text"),
    ];
    let read = Package::read(&package(manifest, &files)).map_err(|error| error.to_string());
    let source = read
        .and_then(|package| LibraryPackages::new(package).map_err(|error| error.to_string()))
        .and_then(|packages| {
            packages
                .entries(entry)
                .and_then(|entries| packages.source(&entries[0]))
                .map_err(|error| error.to_string())
        })?;
    assert_eq!(source.missing, []);
    Ok(source.source)
}

#[test]
fn the_library_is_the_file_that_the_package_names() {
    let with = |fields: &str| format!(r#"{{"name":"x","version":"1.0.0"{fields}}}"#);
    for (fields, expected) in [
        ("", "index"),
        (r#","main":"./main""#, "main"),
        (r#","main":"main.cjs","unpkg":"dist/x.min.js""#, "browser"),
        (r#","main":"missing.js","browser":{"fs":false}"#, "index"),
        (r#","exports":{".":{"require":{"default":"./main.cjs"}}}"#, "main"),
        (r#","exports":"./main.cjs""#, "main"),
    ] {
        assert_eq!(chosen(&with(fields), None).as_deref(), Ok(expected), "{fields}");
    }
    assert_eq!(chosen(&with(""), Some("dist/x.min.js")).as_deref(), Ok("browser"));
    for entry in ["../../evil.js", "README.md", "nope.js"] {
        assert!(chosen(&with(""), Some(entry)).is_err(), "{entry}");
    }
    assert!(chosen("{}", None).is_err() && chosen("[", None).is_err());
}

#[test]
fn an_invalid_package_is_refused() {
    assert!(Package::read(b"").is_err());
    assert!(Package::read(b"not gzip").is_err());
    let whole = package(r#"{"name":"x","version":"1.0.0"}"#, &[]);
    assert!(Package::read(&whole[..whole.len() / 2]).is_err());
}

#[test]
fn integrity_is_the_registrys_sha512() {
    let digest = <sha2::Sha512 as sha2::Digest>::digest(b"x");
    let ours = format!("sha512-{}", base64(&digest));
    assert!(check("x@1", b"x", &ours).is_ok());
    assert!(check("x@1", b"x", &format!("sha1-abc {ours}")).is_ok());
    assert!(check("x@1", b"y", &ours).is_err());
    assert!(check("x@1", b"x", "sha1-abc").is_err() && check("x@1", b"x", "").is_err());
}

#[test]
fn base64_is_as_in_the_rfc() {
    for (text, encoded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
    {
        assert_eq!(base64(text.as_bytes()), encoded);
    }
}

#[test]
fn only_a_name_and_a_version_are_passed_to_npm() {
    assert_eq!(split("lodash@4.17.21").unwrap(), ("lodash", "4.17.21"));
    assert_eq!(split("@a/b@^1").unwrap(), ("@a/b", "^1"));
    for bad in [
        "",
        "lodash",
        "@a/b",
        "lodash@",
        "lodash@-x",
        "--help@1",
        "../x@1",
        "a@1 2",
        "a@file:x",
        "a@http://x",
    ] {
        assert!(split(bad).is_err(), "{bad}");
    }
}
