"""Session search as servers offer it: the service of this machine's store, registered for the process."""

from __future__ import annotations

import logging
import sys

from outcrop.cli import context, jobs
from outcrop.cli.following import follower
from outcrop.config import Config
from outcrop.contracts.vault import STATUS_METHOD, service
from outcrop.contracts.vault.exposure import Transport
from outcrop.contracts.vault.local import LocalService
from outcrop.contracts.vault.response import Status, parse_status
from outcrop.errors import OutcropError
from outcrop.servers import local
from outcrop.servers.vault import VaultMethods

_STATUS_SECONDS = 1.0


class ServedService(LocalService):
    """The store's own, but for the status: that is the indexer's where one runs."""

    def __init__(self, settings: Config) -> None:
        store = context.store(settings)
        self._settings = settings
        super().__init__(
            store, context.catalog(settings, store), lambda: jobs.reconcile(settings), enabled=settings.search
        )

    def status(self) -> Status:
        if self._settings.search:
            try:
                told = local.ask(self._settings.home, STATUS_METHOD, {}, _STATUS_SECONDS)
                if told is not None:
                    return parse_status(told)
            except (OutcropError, ValueError, KeyError):
                pass  # an older one does not know the question, one that ends does not answer it
        return super().status()


def paired(settings: Config) -> VaultMethods:
    """Register this machine's service; its methods for paired clients."""
    service.set_session_search_service(ServedService(settings))
    return VaultMethods(Transport.RELAY, context.catalog(settings).agents, follower(settings))


def log_to_stderr() -> None:
    """Nobody watches a server: what fails in it is told where its starter keeps it."""
    logging.getLogger("outcrop").handlers = [logging.StreamHandler(sys.stderr)]
