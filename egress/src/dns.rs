//! Messages of DNS: a query for the addresses of one name, and its answer, which is hostile input. Does not send anything.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Most addresses of one answer.
const ADDRESSES: usize = 32;
/// Most names in a chain of aliases.
const ALIASES: usize = 16;
/// Most records of one answer that are read.
const RECORDS: usize = 256;
/// Most pointers in one name.
const POINTERS: usize = 16;
const CNAME: u16 = 5;
const INTERNET: u16 = 1;
const RESPONSE: u16 = 0x8000;
const TRUNCATED: u16 = 0x0200;
const RECURSION: u16 = 0x0100;
const NO_SUCH_NAME: u16 = 3;

/// The type of a record with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordType {
    A = 1,
    Aaaa = 28,
}

/// The answer to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// None: the name does not exist, or has no such record.
    Addresses(Vec<IpAddr>),
    /// Too long for a datagram.
    Truncated,
    /// The server does not know.
    Refused,
}

/// A number that others cannot predict.
pub fn random_id() -> io::Result<u16> {
    let mut bytes = [0; 2];
    tokio_rustls::rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut bytes)
        .map_err(|_| io::Error::other("no random numbers"))?;
    Ok(u16::from_be_bytes(bytes))
}

/// The query for one name; `None`: DNS cannot have this name.
pub fn query(id: u16, name: &str, wanted: RecordType) -> Option<Vec<u8>> {
    let mut message = Vec::with_capacity(name.len() + 18);
    for number in [id, RECURSION, 1, 0, 0, 0] {
        message.extend(number.to_be_bytes());
    }
    if name.len() > 253 {
        return None;
    }
    for label in name.split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        message.push(length);
        message.extend(label.as_bytes());
    }
    message.push(0);
    message.extend((wanted as u16).to_be_bytes());
    message.extend(INTERNET.to_be_bytes());
    Some(message)
}

/// The answer in a message; `None`: it is not the answer to this query.
pub fn answer(message: &[u8], id: u16, name: &str, wanted: RecordType) -> Option<Answer> {
    let number = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let flags = number(2)?;
    if number(0)? != id || flags & RESPONSE == 0 || number(4)? != 1 {
        return None;
    }
    let (question, at) = read_name(message, 12)?;
    if question != name || number(at)? != wanted as u16 || number(at + 2)? != INTERNET {
        return None;
    }
    match flags & 0xf {
        0 => {}
        NO_SUCH_NAME => return Some(Answer::Addresses(Vec::new())),
        _ => return Some(Answer::Refused),
    }
    if flags & TRUNCATED != 0 {
        return Some(Answer::Truncated);
    }
    let records = read_records(message, at + 4, usize::from(number(6)?).min(RECORDS))?;
    let mut owner = question;
    let mut addresses = Vec::new();
    for _ in 0..ALIASES {
        let own = records.iter().filter(|record| record.owner == owner);
        let mut alias = None;
        for record in own {
            match (&record.data, wanted) {
                (Data::Address(address @ IpAddr::V4(_)), RecordType::A)
                | (Data::Address(address @ IpAddr::V6(_)), RecordType::Aaaa) => addresses.push(*address),
                (Data::Alias(target), _) => alias = Some(target.clone()),
                _ => {}
            }
        }
        match alias {
            Some(target) if addresses.is_empty() => owner = target,
            _ => break,
        }
    }
    addresses.truncate(ADDRESSES);
    Some(Answer::Addresses(addresses))
}

struct Record {
    owner: String,
    data: Data,
}

enum Data {
    Address(IpAddr),
    Alias(String),
    Other,
}

fn read_records(message: &[u8], mut at: usize, count: usize) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    for _ in 0..count {
        let (owner, next) = read_name(message, at)?;
        let fixed = message.get(next..next + 10)?;
        let (kind, class) =
            (u16::from_be_bytes([fixed[0], fixed[1]]), u16::from_be_bytes([fixed[2], fixed[3]]));
        let length = usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
        let start = next + 10;
        let bytes = message.get(start..start + length)?;
        let data = match kind {
            _ if class != INTERNET => Data::Other,
            1 => Data::Address(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into()),
            28 => Data::Address(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()),
            CNAME => Data::Alias(read_name(message, start)?.0),
            _ => Data::Other,
        };
        records.push(Record { owner, data });
        at = start + length;
    }
    Some(records)
}

/// A name in lower case, and where it ends. Pointers go backwards only, so that it ends.
fn read_name(message: &[u8], start: usize) -> Option<(String, usize)> {
    let (mut name, mut at, mut end, mut pointers) = (String::new(), start, None, 0);
    loop {
        let length = *message.get(at)?;
        match length >> 6 {
            0 if length == 0 => return Some((name, end.unwrap_or(at + 1))),
            0 => {
                let label = message.get(at + 1..at + 1 + usize::from(length))?;
                if !name.is_empty() {
                    name.push('.');
                }
                name.extend(label.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
                if name.len() > 512 {
                    return None;
                }
                at += 1 + usize::from(length);
            }
            3 => {
                let target = usize::from(u16::from_be_bytes([length & 0x3f, *message.get(at + 1)?]));
                end = end.or(Some(at + 2));
                pointers += 1;
                if target >= at || pointers > POINTERS {
                    return None;
                }
                at = target;
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_system_testkit::SeededRandom;

    /// The response to a query with these records: owner, type, data.
    fn response(query: &[u8], flags: u16, records: &[(&[u8], u16, &[u8])]) -> Vec<u8> {
        let mut message = query.to_vec();
        message[2..4].copy_from_slice(&(RESPONSE | flags).to_be_bytes());
        message[6..8].copy_from_slice(&(records.len() as u16).to_be_bytes());
        for (owner, kind, data) in records {
            message.extend(*owner);
            for number in [*kind, INTERNET, 0, 60, data.len() as u16] {
                message.extend(number.to_be_bytes());
            }
            message.extend(*data);
        }
        message
    }

    /// A pointer to the name in the question.
    const QUESTION: &[u8] = &[0xc0, 12];

    #[test]
    fn addresses_are_read_through_aliases() {
        let query = query(7, "www.example.com", RecordType::A).expect("a name");
        let alias = b"\x01a\x04test\x00";
        let records: &[(&[u8], u16, &[u8])] =
            &[(QUESTION, CNAME, alias), (alias, 1, &[10, 0, 0, 1]), (b"\x05other\x00", 1, &[10, 0, 0, 2])];
        let answered = answer(&response(&query, 0, records), 7, "www.example.com", RecordType::A);
        assert_eq!(answered, Some(Answer::Addresses(vec![Ipv4Addr::new(10, 0, 0, 1).into()])));
    }

    #[test]
    fn answers_to_other_queries_are_not_read() {
        let query = query(7, "a.test", RecordType::A).expect("a name");
        let good = response(&query, 0, &[(QUESTION, 1, &[10, 0, 0, 1])]);
        assert!(answer(&good, 7, "a.test", RecordType::A).is_some());
        assert_eq!(answer(&good, 8, "a.test", RecordType::A), None);
        assert_eq!(answer(&good, 7, "b.test", RecordType::A), None);
        assert_eq!(answer(&good, 7, "a.test", RecordType::Aaaa), None);
        assert_eq!(answer(&query, 7, "a.test", RecordType::A), None);
    }

    #[test]
    fn errors_and_truncation_are_told_apart() {
        let query = query(7, "a.test", RecordType::A).expect("a name");
        let code = |flags| answer(&response(&query, flags, &[]), 7, "a.test", RecordType::A);
        assert_eq!(code(NO_SUCH_NAME), Some(Answer::Addresses(Vec::new())));
        assert_eq!(code(2), Some(Answer::Refused));
        assert_eq!(code(TRUNCATED), Some(Answer::Truncated));
    }

    #[test]
    fn loops_of_pointers_and_arbitrary_bytes_end() {
        let query = query(7, "a.test", RecordType::A).expect("a name");
        let own = query.len() as u8;
        let looped = response(&query, 0, &[(&[0xc0, own], 1, &[10, 0, 0, 1])]);
        assert_eq!(answer(&looped, 7, "a.test", RecordType::A), None);
        let mut random = SeededRandom::new(17);
        for _ in 0..20_000 {
            let mut bytes =
                response(&query, 0, &[(QUESTION, CNAME, b"\x01b\xc0\x0c"), (QUESTION, 1, &[1, 2, 3, 4])]);
            let at = random.index(bytes.len());
            bytes[at] = random.bits() as u8;
            let cut = random.index(bytes.len() + 1);
            let _ = answer(&bytes[..cut], 7, "a.test", RecordType::A);
        }
    }

    #[test]
    fn names_that_dns_cannot_have_get_no_query() {
        for name in ["", "a..b", &"x".repeat(64), &"x.".repeat(140)] {
            assert_eq!(query(1, name, RecordType::A), None, "{name}");
        }
    }
}
