//! Shares of several owners: who gets one, who waits, and what makes way.

use super::{Holder, Origin, Share, ShareLimits, Shares};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use vm_system_record::Owner;

fn owner(name: &str) -> Holder {
    Holder::new(Owner::new(name), false)
}

fn admin() -> Holder {
    Holder::new(Owner::new("uid:0"), true)
}

fn shares(most: usize, per_owner: usize, reserved: usize) -> Arc<Shares> {
    Shares::new("things", "things", ShareLimits { most, per_owner, reserved })
}

/// As many as the holder gets.
fn all(shares: &Arc<Shares>, holder: &Holder) -> Vec<Share> {
    std::iter::from_fn(|| shares.take(holder).ok()).collect()
}

fn is_evicted(share: &Share) -> bool {
    poll(pin!(share.evicted())).is_ready()
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn every_owner_finds_something_free_and_the_reserve_is_for_administrators() {
    let shares = shares(68, 68, 4);
    let greedy: Vec<_> =
        ["a", "b", "c", "d", "e"].map(|name| all(&shares, &owner(name))).into_iter().collect();
    assert_eq!(greedy.iter().map(Vec::len).collect::<Vec<_>>(), [32, 16, 8, 4, 2]);
    let refused = shares.take(&owner("a")).expect_err("its share is full");
    assert_eq!(refused.to_string(), "a has 32 of 68 things: an owner leaves as many free as it has");
    assert!(refused.hint().contains("`most` of [shares.things]"), "{}", refused.hint());
    let newcomer = shares.take(&owner("f")).expect("one is free");
    let last = shares.take(&owner("g")).expect("one is free");
    let refused = shares.take(&owner("h")).expect_err("none is free");
    assert_eq!(refused.to_string(), "all of the 68 things are in use");
    assert_eq!(
        refused.of_several(10, 5).to_string(),
        "10 things were requested, of which 5 are available: with them all of the 68 things are in use"
    );
    assert_eq!(all(&shares, &admin()).len(), 4, "the reserve");
    drop((newcomer, last));
    shares.take(&owner("h")).expect("they were returned");
    drop(greedy);
    assert_eq!(all(&shares, &admin()).len(), 68, "an administrator has no share of its own");
}

#[test]
fn a_limit_of_each_owner_is_named_and_one_thing_alone_can_be_had() {
    let few = shares(100, 3, 0);
    let held = all(&few, &owner("a"));
    assert_eq!(held.len(), 3);
    let refused = few.take(&owner("a")).expect_err("its share is full");
    assert_eq!(refused.to_string(), "a has 3 things, the most that one owner may have");
    assert!(refused.hint().contains("`per_owner` of [shares.things]"), "{}", refused.hint());
    let one = shares(1, 1, 0);
    let only = one.take(&owner("a")).expect("it is free");
    assert!(one.take(&owner("b")).is_err());
    drop(only);
    one.take(&owner("b")).expect("it is free again");
}

#[test]
fn longest_idle_share_of_the_owner_makes_way_and_busy_ones_stay() {
    let shares = shares(8, 8, 0);
    let of_a = all(&shares, &owner("a"));
    assert_eq!(of_a.len(), 4);
    of_a[..3].iter().for_each(Share::idle);
    of_a[0].busy();
    of_a[1].idle();
    let other = shares.take(&owner("b")).expect("free");
    other.idle();
    let next = shares.take(&owner("a")).expect("an idle one makes way");
    assert_eq!(of_a.iter().map(is_evicted).collect::<Vec<_>>(), [false, false, true, false]);
    assert!(!is_evicted(&other), "an idle one of another owner stays");
    let another = shares.take(&owner("a")).expect("the next idle one makes way");
    assert!(is_evicted(&of_a[1]));
    assert!(shares.take(&owner("a")).is_err(), "all of its own are busy");
    of_a[1].idle();
    drop(of_a);
    drop((next, another, other));
    assert_eq!(all(&shares, &admin()).len(), 8, "what is evicted is returned once");
}

#[test]
fn if_all_are_in_use_the_owner_that_holds_most_makes_way() {
    let shares = shares(8, 8, 0);
    let of_a = all(&shares, &owner("a"));
    let of_b = all(&shares, &owner("b"));
    let rest = all(&shares, &admin());
    assert_eq!((of_a.len(), of_b.len(), rest.len()), (4, 2, 2));
    of_b[0].idle();
    of_a[2].idle();
    of_a[3].idle();
    let newcomer = shares.take(&owner("c")).expect("an idle one makes way");
    assert!(is_evicted(&of_a[2]) && !is_evicted(&of_a[3]) && !is_evicted(&of_b[0]));
    assert!(!is_evicted(&newcomer));
    drop(newcomer);
}

#[test]
fn if_something_else_is_short_idle_shares_are_evicted_down_to_a_few() {
    let shares = shares(40, 40, 0);
    let idle = all(&shares, &admin());
    idle.iter().for_each(Share::idle);
    assert_eq!(std::iter::from_fn(|| shares.evict().then_some(())).count(), 40 - super::KEPT);
    assert!(is_evicted(&idle[0]) && !is_evicted(&idle[39]), "the longest idle first");
}

#[test]
fn evicted_shares_are_bounded_until_they_are_returned() {
    let shares = shares(68, 68, 4);
    let mut of_a = all(&shares, &owner("a"));
    of_a.iter().for_each(Share::idle);
    for expected in [super::LEAVING, 0] {
        let more = all(&shares, &owner("a"));
        assert_eq!(more.len(), expected, "each in place of one that is not returned");
        more.iter().for_each(Share::idle);
        of_a.extend(more);
    }
    // The others have what is theirs.
    let others = all(&shares, &owner("b"));
    assert_eq!((others.len(), all(&shares, &admin()).len()), (16, 68 - 32 - 16 + super::LEAVING));
    of_a.retain(|share| !is_evicted(share));
    shares.take(&owner("a")).expect("they were returned");
}

#[test]
fn unidentified_clients_have_one_share_until_they_are_known() {
    let shares = shares(8, 8, 0);
    let clients = all(&shares, &Holder::UNKNOWN);
    assert_eq!(clients.len(), 4);
    clients.iter().for_each(Share::idle);
    clients[0].assign(&owner("a")).expect("its first");
    clients[1].assign(&owner("a")).expect("its second");
    clients[1].assign(&owner("a")).expect("it is already");
    let more = all(&shares, &owner("a"));
    assert_eq!(more.len(), 1 + 2, "a free one, and two in place of idle ones");
    assert!(is_evicted(&clients[0]) && is_evicted(&clients[1]));
    clients[1].assign(&owner("b")).expect("an evicted one is nobody's");
    assert!(clients[2].assign(&owner("a")).is_err(), "its share is full");
    clients[2].assign(&owner("b")).expect("another owner");
    drop((clients, more));
    assert_eq!(all(&shares, &admin()).len(), 8);
}

#[test]
fn no_origin_of_unidentified_clients_keeps_the_others_away() {
    let shares = shares(68, 68, 4);
    let [flood, other, third] = [7, 8, 9].map(|uid| Holder::Unidentified(Origin::User(uid)));
    let idle = |holder: &Holder| {
        let share = shares.take(holder).expect("an idle one makes way");
        share.idle();
        share
    };
    let early = idle(&other);
    // More than there are, and none of the evicted ones is returned.
    let of_flood: Vec<_> = (0..31 + super::LEAVING).map(|_| idle(&flood)).collect();
    assert_eq!(of_flood.iter().filter(|share| is_evicted(share)).count(), super::LEAVING);
    assert!(!is_evicted(&early), "the longest idle of all, but of another origin");
    assert!(shares.take(&flood).is_err(), "too many of its own are leaving");
    let late =
        [idle(&other), idle(&third), idle(&Holder::Unidentified(Origin::of_address([10, 0, 0, 1].into())))];
    assert!(!late.iter().chain([&early]).any(is_evicted), "the flood makes way for each");
    assert_eq!(shares.table.lock().expect("no panic").unidentified, 32, "one share for all of them");
    // Origins without a number cannot have more descriptors than this beyond the shares.
    let origins = (100..200).filter_map(|uid| shares.take(&Holder::Unidentified(Origin::User(uid))).ok());
    let origins: Vec<_> = origins.inspect(Share::idle).collect();
    assert_eq!(origins.len(), super::LEAVING_UNIDENTIFIED - super::LEAVING - late.len());
    assert_eq!(all(&shares, &owner("a")).len(), 16, "owners have what is theirs");
    drop((of_flood, early, late, origins));
    assert_eq!(shares.table.lock().expect("no panic").unidentified, 0);
}

#[test]
fn an_origin_is_an_ipv4_address_or_the_network_of_an_ipv6_address() {
    let of = |address: &str| Origin::of_address(address.parse().expect("an address"));
    assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:1"));
    assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
}

#[test]
fn owners_that_wait_have_turns() {
    let shares = shares(1, 1, 0);
    let (a, b) = (owner("a"), owner("b"));
    let first = shares.take(&a).expect("free");
    let mut waiting: Vec<_> =
        [&a, &a, &a, &b].map(|holder| Box::pin(shares.wait(holder, 1))).into_iter().collect();
    for request in &mut waiting {
        assert!(poll(request.as_mut()).is_pending());
    }
    // Given up: not served.
    drop(waiting.remove(0));
    drop(first);
    let Poll::Ready(Some(next)) = poll(waiting[0].as_mut()) else { panic!("the turn of a") };
    assert!(poll(waiting[1].as_mut()).is_pending() && poll(waiting[2].as_mut()).is_pending());
    drop(next);
    assert!(poll(waiting[1].as_mut()).is_pending(), "it had its turn");
    let Poll::Ready(Some(next)) = poll(waiting[2].as_mut()) else { panic!("the turn of b") };
    drop(next);
    assert!(matches!(poll(waiting[1].as_mut()), Poll::Ready(Some(_))));
    let held = all(&shares, &admin());
    let mut late = pin!(shares.wait(&a, 1));
    assert!(poll(late.as_mut()).is_pending());
    shares.close();
    assert!(matches!(poll(late), Poll::Ready(None)));
    assert!(matches!(poll(pin!(shares.wait(&b, 1))), Poll::Ready(None)));
    drop(held);
}

#[test]
fn amounts_are_shared_like_single_things() {
    let memory = shares(100, 100, 0);
    let (a, b) = (owner("a"), owner("b"));
    let Poll::Ready(Some(large)) = poll(pin!(memory.wait(&a, 1_000))) else { panic!("a first one fits") };
    let mut small = pin!(memory.wait(&b, 1));
    assert!(poll(small.as_mut()).is_pending(), "all of it is taken");
    drop(large);
    let Poll::Ready(Some(_one)) = poll(small) else { panic!("it was returned") };
    let Poll::Ready(Some(_half)) = poll(pin!(memory.wait(&a, 40))) else { panic!("it fits") };
    assert!(poll(pin!(memory.wait(&a, 20))).is_pending(), "its share is full");
    assert!(matches!(poll(pin!(memory.wait(&b, 20))), Poll::Ready(Some(_))));
}
