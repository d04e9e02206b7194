"""What `make up` prints once everything runs. The lines work as pasted."""

from collections.abc import Mapping

CURL = """\
curl -N {url}/v1/chat/completions \\
  -H "Authorization: Bearer {key}" \\
  -H "Content-Type: application/json" \\
  -d '{{"model": "{model}", "stream": true, "messages": [{{"role": "user", "content": "Hello!"}}]}}'
"""

PYTHON = """\
from openai import OpenAI

client = OpenAI(base_url="{url}/v1", api_key="{key}")
answer = client.chat.completions.create(
    model="{model}", messages=[{{"role": "user", "content": "Hello!"}}]
)
print(answer.choices[0].message.content)
"""

KEY_PLACE = "YOUR_KEY"


def addresses(url: str) -> str:
    return f"  API      {url}/v1\n  console  {url}/admin/\n"


def examples(url: str, model: str, key: str) -> str:
    filled = {"url": url, "model": model, "key": key}
    curl, python = CURL.format(**filled), PYTHON.format(**filled)
    return f"With curl:\n\n{curl}\nWith Python (pip install openai):\n\n{python}"


def made_at_first_start(made: Mapping[str, str]) -> str:
    """What first_run made; its secrets are shown here and nowhere else."""
    lines = [f"  API key  {made['key']}   (tenant {made['tenant']})"]
    if "password" in made:
        lines.append(f"  login    {made['operator']} / {made['password']}")
    return "\n".join([*lines, "  Key and password are shown this once."])


def first_start(url: str, model: str, key: str) -> str:
    return f"{addresses(url)}\n{examples(url, model, key)}"


def later_start(url: str, model: str) -> str:
    return (
        f"{addresses(url)}\n"
        "  A new API key:        make key\n"
        "  A new login password: .venv/bin/python manage.py create_operator --new-password\n\n"
        f"{examples(url, model, KEY_PLACE)}"
    )
