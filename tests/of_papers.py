"""Names of the components that `experiments.papers` adds to the package."""

_NONIID = 'experiments.papers.noniid_techniques'
_FL_SWAG = 'experiments.papers.fl_swag'
_FEDBE = 'experiments.papers.fedbe'

PROJECTION = f'{_NONIID}.projection:projection'
GRADIENT_NOISE = f'{_NONIID}.gradient_noise:gradient_noise'
SIGN_THRESHOLD = f'{_NONIID}.sign_threshold:sign_threshold'
FRESH_HEAD = f'{_FL_SWAG}.fresh_head:fresh_head'
INDEPENDENT_INIT = f'{_FL_SWAG}.independent_init:independent_init'
THINNING = f'{_FL_SWAG}.thinning:thinning'
STUDENTS = f'{_FEDBE}.students:students'
SWISS_ROLL = f'{_FEDBE}.swiss_roll:swiss_roll'
