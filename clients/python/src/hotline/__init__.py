"""The client of the Hotline API: customer service and CRM."""

from hotline import webhooks as webhooks
from hotline.call import RateLimit as RateLimit
from hotline.call import ResponseInfo as ResponseInfo
from hotline.client import AsyncHotline as AsyncHotline
from hotline.client import Hotline as Hotline
from hotline.errors import ApiConnectionError as ApiConnectionError
from hotline.errors import ApiError as ApiError
from hotline.errors import ApiTimeoutError as ApiTimeoutError
from hotline.errors import EventGap as EventGap
from hotline.errors import HotlineError as HotlineError
from hotline.errors import SecretLost as SecretLost
from hotline.errors import WebhookVerificationError as WebhookVerificationError
from hotline.files import UPLOAD_BYTES_MAX as UPLOAD_BYTES_MAX
from hotline.files import File as File
from hotline.files import Upload as Upload
from hotline.generated import types as types
from hotline.generated.operations import OPERATIONS as OPERATIONS
from hotline.generated.version import API_VERSION as API_VERSION
from hotline.pages import AsyncPages as AsyncPages
from hotline.pages import Page as Page
from hotline.pages import Pages as Pages
from hotline.request import NOT_GIVEN as NOT_GIVEN
from hotline.version import VERSION as VERSION
from hotline.generated.errors import *  # noqa: F403

__version__ = VERSION
