"""The session search contract: `aiVault.searchSessions` and `aiVault.searchStatus`, as functions over values.

What comes from another process is parsed where it arrives (`request`, `response`); what leaves is cut to what its
receiver may see (`exposure`); a service that does the work is registered by the process that owns it (`service`).
"""

SEARCH_METHOD = "aiVault.searchSessions"
STATUS_METHOD = "aiVault.searchStatus"
