//! References to `docs/decisions/` in printed pages: the binary has no such files, so a link becomes the number of the decision.

/// Begin of a link's address, in pages beside the folder and elsewhere.
const ADDRESSES: [&str; 2] = ["](decisions/", "](docs/decisions/"];

/// The page with each link to a record of a decision as `decision NNN of the source tree`.
pub(super) fn without_links(page: &str) -> String {
    let mut done = String::with_capacity(page.len());
    let mut rest = page;
    while let Some((link, address)) = next_address(rest) {
        let begin = rest[..link].rfind('[');
        let end = rest[address..].find(')').map(|end| address + end);
        let number =
            rest[address..].get(..3).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let (Some(begin), Some(end), Some(number)) = (begin, end, number) else {
            done.push_str(&rest[..address]);
            rest = &rest[address..];
            continue;
        };
        done.push_str(&rest[..begin]);
        done.push_str("decision ");
        done.push_str(number);
        done.push_str(" of the source tree");
        rest = &rest[end + 1..];
    }
    done.push_str(rest);
    done
}

/// Where the next link's text ends and where its file name begins.
fn next_address(text: &str) -> Option<(usize, usize)> {
    let found = ADDRESSES.iter().filter_map(|begin| text.find(begin).map(|at| (at, at + begin.len())));
    found.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_decisions_become_their_numbers() {
        let page = "one ([007](decisions/007-jails-and-groups-of-owners.md)), [decision 023](docs/decisions/023-test262-sets.md).\n[a](b.md)";
        assert_eq!(
            without_links(page),
            "one (decision 007 of the source tree), decision 023 of the source tree.\n[a](b.md)"
        );
        for other in [
            "",
            "[x](decisions/",
            "](decisions/023-test262-sets.md)",
            "[x](decisions/é.md)",
            "`docs/decisions/`",
        ] {
            assert_eq!(without_links(other), other);
        }
    }
}
