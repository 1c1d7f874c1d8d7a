//! Owns the globals that a policy disables: removes them, and restores them when the policy allows them again.

use super::state::SharedState;
use rquickjs::{Ctx, Object, Persistent, Result, Value};

/// Deletes a global. Those that cannot be deleted (`undefined`, `NaN`, `Infinity`) stay.
pub(super) fn remove_global(ctx: &Ctx<'_>, name: &str) {
    if ctx.globals().remove(name).is_err() {
        drop(ctx.catch());
    }
}

/// Makes exactly these intrinsics unreachable as globals. `Function` is also removed as `constructor` of all functions, since
/// `(() => {}).constructor` is the same function; other intrinsics stay reachable through literals.
pub(super) fn apply(ctx: &Ctx<'_>, state: &SharedState, names: &[String]) -> Result<()> {
    let withdrawn = &mut *state.withdrawn.borrow_mut();
    let globals = ctx.globals();
    let back: Vec<String> = withdrawn.keys().filter(|name| !names.contains(name)).cloned().collect();
    for name in back {
        let Some(places) = withdrawn.remove(&name) else { continue };
        let define = state.captured_function(ctx, "defineOwn")?;
        for (owner, key, descriptor) in places {
            let (owner, descriptor): (Object, Value) = (owner.restore(ctx)?, descriptor.restore(ctx)?);
            if !owner.contains_key(key.as_str())? {
                let _: Value = define.call((owner, key, descriptor))?;
            }
        }
    }
    for name in names {
        if withdrawn.contains_key(name) || !globals.contains_key(name.as_str())? {
            continue;
        }
        let mut owners = vec![(globals.clone(), name.clone())];
        if name == "Function" {
            for maker in
                ["functionPrototype", "generatorPrototype", "asyncPrototype", "asyncGeneratorPrototype"]
            {
                if let Some(owner) = state.captured_object(ctx, maker) {
                    owners.push((owner, "constructor".to_owned()));
                }
            }
        }
        let mut places = Vec::new();
        // The descriptor, not the value: what is evaluated on first use is not evaluated here.
        let own = state.captured_function(ctx, "ownDescriptor")?;
        for (owner, key) in owners {
            let descriptor: Value = own.call((owner.clone(), key.as_str()))?;
            if descriptor.is_undefined() {
                continue;
            }
            owner.remove(key.as_str())?;
            places.push((Persistent::save(ctx, owner), key, Persistent::save(ctx, descriptor)));
        }
        withdrawn.insert(name.clone(), places);
    }
    Ok(())
}
