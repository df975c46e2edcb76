# Asks the service by the client of openapi-generator's ruby, and reports what it got as JSON.
$LOAD_PATH.unshift(File.join(__dir__, 'client', 'lib'))
require 'json'
require 'logger'
require 'uri'
require 'vmsizes_sdk'

VmsizesSdk.configure do |config|
  at = URI(ARGV.fetch(0))
  config.scheme = at.scheme
  config.host = "#{at.host}:#{at.port}"
  config.params_encoding = :multi # lists are repeated: gpu=A100&gpu=H100
  config.logger = Logger.new($stderr) # it tells where it keeps a file
end

SIZES = VmsizesSdk::SizesApi.new
INFERENCE = VmsizesSdk::InferenceIn.new(context_tokens: 8192, concurrency: 32)

def sizes
  cheapest = SIZES.list_sizes(min_gpu_mem: 80, sort: ['usd_per_hour'], limit: 1).items.first
  size = SIZES.show_size('NV6ads_A10_v5')
  shown = %w[name gpu_count gpu_fraction nvlink disputed_fields]
  csv = VmsizesSdk::ExportsApi.new.export_sizes_csv(gpu: ['A100'])
  {
    cheapest: { name: cheapest.name, usd_per_hour: cheapest.usd_per_hour },
    as_of: cheapest.on_demand_as_of,
    chosen: SIZES.list_sizes(gpu: %w[A100 H100], status: %w[current retiring], nvlink: true).total,
    size: shown.to_h { |field| [field, size.public_send(field)] },
    csv: csv.open.read.count("\n")
  }
end

def walk
  walked = []
  asked = { limit: 25 }
  loop do
    page = SIZES.list_sizes(asked)
    walked.concat(page.items.map(&:name))
    return { walked: walked, total: page.total } if page.next_cursor.nil?

    asked[:cursor] = page.next_cursor
  end
end

def models
  api = VmsizesSdk::FitApi.new
  fit = api.fit_workload(
    VmsizesSdk::FitIn.new(
      model: 'llama-3.1-70b',
      inference: INFERENCE,
      constraints: VmsizesSdk::ConstraintsIn.new(regions: ['westeurope']),
      include: ['rejected']
    )
  )
  estimate = api.estimate_workload(VmsizesSdk::EstimateIn.new(model: 'llama-3.1-70b', inference: INFERENCE))
  best = fit.items.first
  rejected = fit.rejected.first
  {
    fit: {
      size: best.size,
      usd_per_hour: best.cost.on_demand.usd_per_hour,
      rejected: rejected.size,
      code: rejected.failures.first.code
    },
    parameters: estimate.parameters.total.value
  }
end

def problem
  SIZES.show_size('nothing')
  raise 'there is a size named nothing'
rescue VmsizesSdk::ApiError => e
  told = JSON.parse(e.response_body)
  { problem: %w[type title status detail].to_h { |field| [field, told[field]] } }
end

puts JSON.generate([sizes, walk, models, problem].reduce(:merge))
