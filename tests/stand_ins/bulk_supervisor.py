"""The worker and its clock under the real supervisor and the real watch, as `make up` has them.

python bulk_supervisor.py LOG_FOLDER
"""

import asyncio
import os
import sys
from pathlib import Path

from redis.asyncio import Redis

from operations import children
from operations.bulk_watch import BulkWatch
from operations.supervisor import Supervisor


def report(name: str, status: int) -> None:
    print(f"{name} ended with {status}", flush=True)


async def main() -> None:
    supervisor = Supervisor(dict(os.environ), Path(sys.argv[1]), report)
    worker = supervisor.add(children.worker_child(os.environ))
    beat = supervisor.add(children.beat_child())
    redis = Redis.from_url(os.environ["REDIS_URL"], socket_timeout=2)
    await BulkWatch(redis, redis, worker, beat).run()


if __name__ == "__main__":
    asyncio.run(main())
