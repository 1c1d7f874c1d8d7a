//! A jail from its parts, and the tasks that listen to it: the same for a new one and for an adopted one.

use super::super::address::KeeperAddress;
use super::super::build::JailBuild;
use super::super::config::SpawnConfig;
use super::super::control::{Control, lock};
use super::super::error::SpawnError;
use super::super::groups::JailGroups;
use super::super::kind_zygotes::KindZygotes;
use super::super::notify::{self, Orders};
use super::super::zygote::Zygote;
use super::{EVENTS, FIRST_ZYGOTE, Jail, READABLE, SpawnEvent, Zygotes};
use crate::reactor::{WatchedFd, watch};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use vm_system_protocol::keeper::LayerReport;
use vm_system_sandbox::pidfd::PidFd;
use vm_system_sandbox::seccomp::notify::Listener;

/// The parts of which a jail is made.
pub(crate) struct JailParts {
    pub(crate) pid: u32,
    pub(crate) pidfd: PidFd,
    pub(crate) layers: Vec<LayerReport>,
    /// The build that the jail's processes run.
    pub(crate) build: JailBuild,
    pub(crate) address: Option<KeeperAddress>,
    pub(crate) control: WatchedFd,
    pub(crate) listener: Listener,
    /// The one that forks.
    pub(crate) zygote: Option<Arc<Zygote>>,
    pub(crate) groups: JailGroups,
}

impl Jail {
    /// A jail of which nothing is received before [`Self::listen`].
    pub(crate) fn assemble(
        config: &SpawnConfig,
        parts: JailParts,
        orders: Orders,
    ) -> (Arc<Self>, mpsc::Receiver<SpawnEvent>) {
        let JailParts { pid, pidfd, layers, build, address, control, listener, zygote, groups } = parts;
        let left = Arc::default();
        if let Ok(keeper) = pidfd.try_clone() {
            config.keepers_alive.add(keeper, address.clone(), Arc::clone(&left));
        }
        let (events, receiver) = mpsc::channel(EVENTS);
        let zygotes = Zygotes { current: zygote, reserve: None, listener: Arc::new(listener) };
        let jail = Arc::new(Self {
            sandbox: config.sandbox,
            pid,
            pidfd,
            layers,
            address,
            left,
            stuck: AtomicBool::new(false),
            control: Arc::new(Control::new(control, build.protocol)),
            orders,
            zygotes: Mutex::new(zygotes),
            next_zygote: AtomicU32::new(FIRST_ZYGOTE + 1),
            kind_zygotes: KindZygotes::default(),
            pool: config.prestart_workers.then(Arc::default),
            library_store: config.library_store.clone(),
            groups,
            build,
            forks: AtomicU64::new(0),
            events,
        });
        (jail, receiver)
    }

    /// The tasks that listen to the keeper and answer the notifications of the jail's processes.
    pub(crate) fn listen(&self) -> Result<Vec<AbortHandle>, SpawnError> {
        let listener = Arc::clone(&lock(&self.zygotes).listener);
        let own =
            listener.try_clone().and_then(|own| Ok((own, watch(listener.try_clone()?.into(), READABLE)?)));
        let (own, watched) = own.map_err(SpawnError::io("watch for forks"))?;
        let (control, events) = (Arc::clone(&self.control), self.events.clone());
        Ok(vec![
            tokio::spawn(async move { control.listen(events).await }).abort_handle(),
            tokio::spawn(notify::answer(own, watched, self.orders.clone(), self.events.clone()))
                .abort_handle(),
        ])
    }
}
