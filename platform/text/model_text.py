"""All text work for one served model, from nothing but its Description."""

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from tokenizers import Tokenizer

from inference_engine.contract.codes import Code
from inference_engine.contract.events import Description
from inference_engine.contract.tokenizer_file import tokenizer_of

from .chat_prompt import Message, byte_length, check_size, render_chat
from .chat_template import ChatTemplate
from .decoding import Vocabulary
from .errors import ModelTextError, PromptError
from .prompt_encoder import PromptEncoder
from .stream_decoder import StreamDecoder
from .token_bytes import token_table
from .tools.parser import ToolParser
from .tools.syntax import syntax_of
from .tracked_text import TrackedText

ResultT = TypeVar("ResultT")

NUM_THREADS = 2
_threads = ThreadPoolExecutor(NUM_THREADS, thread_name_prefix="octavo-text")
"""Shared by all models of the process; a thread starts with the first prompt."""

MAX_BYTES_AT_ONCE = 1_000
"""A prompt up to here takes under half a millisecond, on the event loop; a longer one goes to a thread."""
BYTES_PER_MESSAGE = 100
"""What a template does for a message that says nothing, in bytes of one that does."""

PROBE = (
    {"role": "user", "content": "What is 2 + 2?"},
    {"role": "assistant", "content": "4"},
    {"role": "user", "content": "Thanks!"},
)


class ModelText:
    """Prompts in, token ids out, and back. Building one takes a good part of a second: do it in a thread."""

    def __init__(
        self,
        description: Description,
        tokenizer: Tokenizer,
        encoder: PromptEncoder,
        vocabulary: Vocabulary,
        template: ChatTemplate | None,
    ) -> None:
        self.model = description.model
        self.context_length = description.context_length
        self._min_output_tokens = description.min_output_tokens
        self.max_prompt_bytes = description.context_length * vocabulary.longest
        self.vocabulary = vocabulary
        self.tool_syntax = syntax_of(
            description.chat_template,
            knows_tools=template is not None and template.knows_tools,
            setting=description.tool_syntax,
        )
        self._vocabulary_with_markers = vocabulary.showing(_ids_of(tokenizer, self.tool_syntax.markers))
        self._tokenizer = tokenizer
        self._encoder = encoder
        self._template = template

    @classmethod
    def from_description(cls, description: Description) -> "ModelText":
        """Raises ModelTextError."""
        try:
            file = tokenizer_of(description)
            parsed = json.loads(file)
            tokenizer = Tokenizer.from_buffer(file)
            encoder = PromptEncoder(file)
            table = token_table(parsed, tokenizer, description.vocab_size)
        except ModelTextError:
            raise
        except Exception as error:  # tokenizers raises plain Exception for a file it can't read
            raise ModelTextError(f"the tokenizer can't be read: {error}") from error
        vocabulary = Vocabulary(table, [token for token in description.special_ids if token < len(table)])
        template = _chat_template(description, vocabulary)
        text = cls(description, tokenizer, encoder, vocabulary, template)
        text._check_control_tokens()
        return text

    async def render_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
    ) -> list[int]:
        """Prompt ids of a conversation. Raises PromptError."""
        template = self._template
        if template is None:
            raise PromptError(f"{self.model} has no chat template", "messages", Code.UNSUPPORTED_FEATURE)
        num_bytes = check_size(messages, self.context_length, self.max_prompt_bytes, tools or ())

        def render() -> list[int]:
            text = render_chat(template, messages, tools=tools, add_generation_prompt=add_generation_prompt)
            self._check_bytes(text, "messages")
            return self._encoder.encode_rendered(text)

        return self._checked(await _worked(render, num_bytes + BYTES_PER_MESSAGE * len(messages)), "messages")

    async def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Prompt ids of a plain completion: nothing in `text` is a control token. Raises PromptError."""
        if not text:
            raise PromptError("prompt must not be empty", "prompt")
        num_bytes = self._check_bytes(text, "prompt")
        encode = partial(self._encoder.encode_plain, text, add_special_tokens=add_special_tokens)
        return self._checked(await _worked(encode, num_bytes), "prompt")

    def stream_decoder(
        self,
        stop: Sequence[str] = (),
        *,
        include_stop: bool = False,
        skip_special_tokens: bool = True,
        min_tokens: int = 0,
        show_tool_markers: bool = False,
    ) -> StreamDecoder:
        """`stop` as `checked_stops` returns it; the markers are for a parser of calls to see."""
        return StreamDecoder(
            self._vocabulary_with_markers if show_tool_markers else self.vocabulary,
            stop,
            include_stop=include_stop,
            skip_special_tokens=skip_special_tokens,
            min_tokens=min_tokens,
        )

    def tool_parser(self, names: Collection[str]) -> ToolParser:
        """Of calls as this model writes them; `names` of the tools that may be called."""
        return ToolParser(self.tool_syntax, names)

    def decode(self, token_ids: Iterable[int], *, skip_special_tokens: bool = True) -> str:
        return self.vocabulary.decode(token_ids, skip_special_tokens=skip_special_tokens)

    def token_bytes(self, token_id: int) -> bytes:
        """Exactly what the token stands for, special tokens included."""
        return self.vocabulary.all_bytes[token_id]

    def _check_bytes(self, text: str, param: str) -> int:
        num_bytes = byte_length(text, param)
        if num_bytes > self.max_prompt_bytes:
            raise PromptError(
                f"the prompt has {num_bytes} bytes; {self.context_length} tokens, the model's whole context, "
                f"have at most {self.max_prompt_bytes}",
                param,
                Code.CONTEXT_LENGTH_EXCEEDED,
            )
        return num_bytes

    def _checked(self, token_ids: list[int], param: str) -> list[int]:
        """A prompt leaves room for what must fit behind it."""
        if not token_ids:
            raise PromptError("the prompt holds no tokens", param)
        if len(token_ids) + self._min_output_tokens > self.context_length:
            raise PromptError(
                f"the prompt has {len(token_ids)} tokens and the model's context {self.context_length}",
                param,
                Code.CONTEXT_LENGTH_EXCEEDED,
            )
        return token_ids

    def _check_control_tokens(self) -> None:
        """The template's own control tokens must come through, or the model would be fed nonsense."""
        if self._template is None:
            return
        try:
            rendered = render_chat(self._template, PROBE)
        except PromptError:  # wants something else of its messages; each request will be told
            return
        if self._encoder.encode_rendered(rendered) != self._expected(rendered):
            raise ModelTextError(
                "the chat template writes control tokens in a way that can't be traced to it"
            )

    def _expected(self, rendered: TrackedText) -> list[int]:
        return list(self._tokenizer.encode(str.__str__(rendered), add_special_tokens=False).ids)


def _chat_template(description: Description, vocabulary: Vocabulary) -> ChatTemplate | None:
    if description.chat_template is None:
        return None
    max_chars = 2 * description.context_length * vocabulary.longest
    return ChatTemplate(description.chat_template, description.template_tokens, max_chars)


def _ids_of(tokenizer: Tokenizer, tokens: Iterable[str]) -> list[int]:
    ids = (tokenizer.token_to_id(token) for token in tokens)
    return [token_id for token_id in ids if token_id is not None]


async def _worked(work: Callable[[], ResultT], num_bytes: int) -> ResultT:
    """A thread for what takes long: each hand-over of the interpreter may cost other streams milliseconds."""
    if num_bytes <= MAX_BYTES_AT_ONCE:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_threads, work)
